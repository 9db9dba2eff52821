"""Addresses of the bays."""

from __future__ import annotations

from django.urls import path

from web.disks import bay_views

urlpatterns = [
    path("disks/bays/", bay_views.bays, name="bays"),
    path("disks/<str:key>/locate/", bay_views.locate, name="locate_disk"),
]
