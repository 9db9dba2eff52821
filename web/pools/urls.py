"""Addresses of pools."""

from __future__ import annotations

from django.urls import include, path

from web.pools import moving, topology_urls, views, wizard

urlpatterns = [
    path("", views.pools, name="pools"),
    path("new/", wizard.create, name="create_pool"),
    path("new/key/<str:name>/", wizard.key, name="new_key"),
    path("unlock/", views.unlock, name="unlock"),
    path("bring-in/", moving.bring_in, name="bring_in"),
    path("bring-in/look/", moving.look, name="look_for_pools"),
    path("bring-in/<str:guid>/", moving.import_pool, name="import_pool"),
    path("<str:key>/end/<str:act>/", moving.end, name="end_pool"),
    *topology_urls.urlpatterns,
    path("<str:key>/", views.pool, name="pool"),
    path("<str:key>/", include("web.pools.life_urls")),
]
