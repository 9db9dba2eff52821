"""Addresses of reaching a share."""

from __future__ import annotations

from django.urls import path

from web.shares import by_hand, connected, protection, protocols, reach

urlpatterns = [
    path("connected/", connected.connected, name="connected"),
    path("connected/<str:key>/end/", connected.end, name="end_connection"),
    path("protection/", protection.protection, name="protection"),
    path("by-hand/", by_hand.edits, name="edits"),
    path("by-hand/<str:key>/<str:what>/", by_hand.decide, name="decide_edit"),
    path("<str:key>/nfs/", protocols.over_nfs, name="share_nfs"),
    path("<str:key>/afp/", protocols.over_afp, name="share_afp"),
    path("<str:key>/<str:protocol>/ways/", reach.ways, name="ways"),
    path("<str:key>/<str:protocol>/why/", reach.ask, name="why"),
    path("<str:key>/<str:protocol>/look/", reach.look, name="look_at_share"),
    path("<str:key>/<str:protocol>/mend/<str:way>/", reach.mend, name="mend_share"),
]
