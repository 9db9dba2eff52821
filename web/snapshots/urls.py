"""Addresses of snapshots."""

from __future__ import annotations

from django.urls import path

from web.snapshots import browse_views, detail_views, space_views, views

urlpatterns = [
    path("", views.everything, name="snapshots"),
    path("destroy/", views.destroy, name="destroy_snapshots"),
    path("of/<str:key>/", views.of_dataset, name="snapshots_of"),
    path("of/<str:key>/take/", views.take, name="take_snapshot"),
    path("of/<str:key>/policy/", views.policy, name="snapshot_policy"),
    path("of/<str:key>/policy/follow/", views.follow, name="follow_policy"),
    path("policies/", space_views.by_themselves, name="snapshot_policies"),
    path("space/", space_views.everywhere, name="snapshots_space"),
    path("holds/", space_views.held, name="snapshot_holds"),
    path("of/<str:key>/bookmarks/", views.bookmarks, name="bookmarks"),
    path("of/<str:key>/bookmarks/<str:short>/destroy/", views.destroy_bookmark, name="destroy_bookmark"),
    path("of/<str:key>/space/", space_views.of_dataset, name="snapshot_space"),
    path("of/<str:key>/versions/", browse_views.versions, name="file_versions"),
    path("of/<str:key>/<str:guid>/files/", browse_views.files, name="snapshot_files"),
    path("of/<str:key>/<str:guid>/file/", browse_views.file, name="snapshot_file"),
    path("of/<str:key>/<str:guid>/content/", browse_views.content, name="snapshot_content"),
    path("of/<str:key>/<str:guid>/restore/", browse_views.restore, name="restore_from_snapshot"),
    path("of/<str:key>/<str:guid>/difference/", browse_views.difference, name="snapshot_difference"),
    path("of/<str:key>/<str:guid>/roll-back/", detail_views.roll_back, name="roll_back"),
    path("of/<str:key>/<str:guid>/", detail_views.one, name="snapshot"),
    path("of/<str:key>/<str:guid>/<str:act>/", detail_views.act, name="snapshot_act"),
]
