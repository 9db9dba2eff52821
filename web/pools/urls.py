"""Addresses of pools."""

from __future__ import annotations

from django.urls import include, path

from web.pools import views

urlpatterns = [
    path("", views.pools, name="pools"),
    path("new/", views.create, name="create_pool"),
    path("unlock/", views.unlock, name="unlock"),
    path("<str:key>/", views.pool, name="pool"),
    path("<str:key>/", include("web.pools.life_urls")),
]
