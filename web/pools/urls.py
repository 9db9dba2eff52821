"""Addresses of pools."""

from __future__ import annotations

from django.urls import path

from web.pools import topology_urls, views

urlpatterns = [
    path("", views.pools, name="pools"),
    path("new/", views.create, name="create_pool"),
    path("unlock/", views.unlock, name="unlock"),
    *topology_urls.urlpatterns,
    path("<str:key>/", views.pool, name="pool"),
]
