"""Addresses of shares; each belongs to a folder."""

from __future__ import annotations

from django.urls import path

from web.shares import iscsi_views, smb_views

urlpatterns = [
    path("<str:key>/share/", smb_views.share_over_smb, name="share_folder"),
    path("<str:key>/switch/<str:protocol>/<str:to>/", smb_views.switch_share, name="switch_share"),
    path("<str:key>/iscsi/", iscsi_views.share_over_iscsi, name="share_iscsi"),
    path("<str:key>/iscsi/stop/", iscsi_views.stop_iscsi, name="stop_iscsi"),
    path("<str:key>/iscsi/why/", iscsi_views.troubleshoot_iscsi, name="why_iscsi"),
]
