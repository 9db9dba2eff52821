"""Addresses of reaching a share."""

from __future__ import annotations

from django.urls import path

from web.shares import connection_views, drift_views, nfs_afp_views, smb_security_views, troubleshoot_views

urlpatterns = [
    path("connected/", connection_views.connected, name="connected"),
    path("connected/<str:key>/end/", connection_views.end, name="end_connection"),
    path("protection/", smb_security_views.protection, name="protection"),
    path("by-hand/", drift_views.edits, name="edits"),
    path("by-hand/<str:key>/<str:what>/", drift_views.decide, name="decide_edit"),
    path("<str:key>/nfs/", nfs_afp_views.over_nfs, name="share_nfs"),
    path("<str:key>/afp/", nfs_afp_views.over_afp, name="share_afp"),
    path("<str:key>/<str:protocol>/ways/", troubleshoot_views.ways, name="ways"),
    path("<str:key>/<str:protocol>/why/", troubleshoot_views.ask, name="why"),
    path("<str:key>/<str:protocol>/look/", troubleshoot_views.look, name="look_at_share"),
    path("<str:key>/<str:protocol>/mend/<str:way>/", troubleshoot_views.mend, name="mend_share"),
]
