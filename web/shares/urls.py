"""Addresses of shares; each belongs to a folder."""

from __future__ import annotations

from django.urls import path

from web.shares import smb_views

urlpatterns = [
    path("<str:key>/share/", smb_views.share_over_smb, name="share_folder"),
    path("<str:key>/switch/<str:protocol>/<str:to>/", smb_views.switch_share, name="switch_share"),
]
