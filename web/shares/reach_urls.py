"""Addresses of reaching a share."""

from __future__ import annotations

from django.urls import path

from web.shares import protocols, reach

urlpatterns = [
    path("<str:key>/nfs/", protocols.over_nfs, name="share_nfs"),
    path("<str:key>/afp/", protocols.over_afp, name="share_afp"),
    path("<str:key>/<str:protocol>/ways/", reach.ways, name="ways"),
    path("<str:key>/<str:protocol>/why/", reach.ask, name="why"),
    path("<str:key>/<str:protocol>/look/", reach.look, name="look_at_share"),
    path("<str:key>/<str:protocol>/mend/<str:way>/", reach.mend, name="mend_share"),
]
