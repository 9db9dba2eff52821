"""URLs of pages that change a pool's vdevs."""

from __future__ import annotations

from django.urls import path

from web.pools import replace_views, topology_views

urlpatterns = [
    path("replacements/", replace_views.list_replacements, name="replacements"),
    path("replacements/<int:pk>/", replace_views.show_replacement, name="replacement"),
    path("replacements/<int:pk>/offline/", replace_views.offline_disk, name="replacement_offline"),
    path("replacements/<int:pk>/accept/", replace_views.accept_disk, name="replacement_accept"),
    path("replacements/<int:pk>/close/", replace_views.close_replacement, name="replacement_close"),
    path("<str:key>/replace/", replace_views.choose_disk, name="replace_disk"),
    path("<str:key>/vdev/<int:guid>/<slug:what>/", topology_views.review_vdev_act, name="vdev_act"),
    path("<str:key>/add/<slug:kind>/", topology_views.add_disks, name="add_disks"),
]
