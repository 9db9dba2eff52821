"""Addresses of folders."""

from __future__ import annotations

from django.urls import include, path

from web.datasets import encryption_views, views, volume_views

urlpatterns = [
    path("", views.list_folders, name="folders"),
    path("new/", views.create_folder, name="create_folder"),
    path("unlock-all/", encryption_views.unlock_all, name="unlock_all"),
    path("volumes/", volume_views.list_volumes, name="volumes"),
    path("volumes/new/", volume_views.create_volume, name="create_volume"),
    path("<str:key>/", views.show_folder, name="folder"),
    path("<str:key>/", include("web.datasets.action_urls")),
]
