"""Addresses of the bays."""

from __future__ import annotations

from django.urls import path

from web.bays import views

urlpatterns = [
    path("disks/bays/", views.bays, name="bays"),
    path("disks/<str:key>/locate/", views.locate, name="locate_disk"),
]
