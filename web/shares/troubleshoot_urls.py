"""URLs of pages about sharing as a whole, and about one folder's NFS, AFP and troubleshooting."""

from __future__ import annotations

from django.urls import path

from web.shares import (
    connection_views,
    drift_views,
    new_share_views,
    nfs_afp_views,
    smb_security_views,
    troubleshoot_views,
)

urlpatterns = [
    path("new/", new_share_views.share_new_folder, name="share_new_folder"),
    path("connected/", connection_views.list_connections, name="connected"),
    path("connected/<str:key>/end/", connection_views.end_connection, name="end_connection"),
    path("protection/", smb_security_views.smb_protection, name="protection"),
    path("by-hand/", drift_views.list_edits, name="edits"),
    path("by-hand/target/<str:key>/overwrite/", drift_views.put_target_back, name="put_target_back"),
    path("by-hand/<str:key>/<str:what>/", drift_views.decide_edit, name="decide_edit"),
    path("<str:key>/nfs/", nfs_afp_views.over_nfs, name="share_nfs"),
    path("<str:key>/afp/", nfs_afp_views.over_afp, name="share_afp"),
    path("<str:key>/<str:protocol>/ways/", troubleshoot_views.show_addresses, name="ways"),
    path("<str:key>/<str:protocol>/why/", troubleshoot_views.troubleshoot_share, name="why"),
    path("<str:key>/<str:protocol>/look/", troubleshoot_views.look_at_share, name="look_at_share"),
    path("<str:key>/<str:protocol>/mend/<str:way>/", troubleshoot_views.fix_share, name="mend_share"),
]
