"""URLs of pools."""

from __future__ import annotations

from django.urls import include, path

from web.pools import create_wizard, import_views, lifecycle_views, topology_urls, views

urlpatterns = [
    path("", views.list_pools, name="pools"),
    path("new/", create_wizard.create_pool, name="create_pool"),
    path("new/key/<str:name>/", create_wizard.create_key, name="new_key"),
    path("unlock/", views.unlock_dataset, name="unlock"),
    path("import/", import_views.list_importable, name="import_pools"),
    path("import/look/", import_views.search_pools, name="search_pools"),
    path("import/<str:guid>/", import_views.import_pool, name="import_pool"),
    path("<str:key>/end/<str:act>/", lifecycle_views.review_pool_act, name="end_pool"),
    *topology_urls.urlpatterns,
    path("<str:key>/", views.show_pool, name="pool"),
    path("<str:key>/", include("web.pools.maintenance_urls")),
]
