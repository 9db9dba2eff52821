"""Addresses of pools."""

from __future__ import annotations

from django.urls import path

from web.pools import views, wizard

urlpatterns = [
    path("", views.pools, name="pools"),
    path("new/", wizard.create, name="create_pool"),
    path("new/key/<str:name>/", wizard.key, name="new_key"),
    path("unlock/", views.unlock, name="unlock"),
    path("<str:key>/", views.pool, name="pool"),
]
