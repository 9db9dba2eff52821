"""Addresses of folders."""

from __future__ import annotations

from django.urls import path

from web.datasets import views

urlpatterns = [
    path("", views.folders, name="folders"),
    path("new/", views.create, name="create_folder"),
    path("<str:key>/", views.folder, name="folder"),
]
