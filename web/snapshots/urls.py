"""Addresses of snapshots."""

from __future__ import annotations

from django.urls import path

from web.snapshots import adoption_views, browse_views, detail_views, restore_views, space_views, views

urlpatterns = [
    path("", views.all_snapshots, name="snapshots"),
    path("destroy/", views.destroy_snapshots, name="destroy_snapshots"),
    path("of/<str:key>/", views.snapshots_of_dataset, name="snapshots_of"),
    path("restore/", restore_views.choose_folder, name="restore"),
    path("of/<str:key>/restore/", restore_views.restore_files, name="restore_files"),
    path("of/<str:key>/take/", views.take_snapshot, name="take_snapshot"),
    path("of/<str:key>/policy/", views.edit_policy, name="snapshot_policy"),
    path("of/<str:key>/policy/follow/", views.follow_parent, name="follow_policy"),
    path("of/<str:key>/policy/adopt/", adoption_views.adopt_snapshots, name="adopt_snapshots"),
    path("policies/", space_views.list_policies, name="snapshot_policies"),
    path("space/", space_views.space_by_folder, name="snapshots_space"),
    path("holds/", space_views.list_held, name="snapshot_holds"),
    path("of/<str:key>/bookmarks/", views.list_bookmarks, name="bookmarks"),
    path("of/<str:key>/bookmarks/<str:short>/destroy/", views.destroy_bookmark, name="destroy_bookmark"),
    path("of/<str:key>/space/", space_views.space_of_dataset, name="snapshot_space"),
    path("of/<str:key>/versions/", browse_views.list_versions, name="file_versions"),
    path("of/<str:key>/<str:guid>/files/", browse_views.browse_folder, name="snapshot_files"),
    path("of/<str:key>/<str:guid>/file/", browse_views.show_file, name="snapshot_file"),
    path("of/<str:key>/<str:guid>/content/", browse_views.serve_content, name="snapshot_content"),
    path("of/<str:key>/<str:guid>/restore/", browse_views.restore_entry, name="restore_from_snapshot"),
    path("of/<str:key>/<str:guid>/difference/", browse_views.show_difference, name="snapshot_difference"),
    path("of/<str:key>/<str:guid>/roll-back/", detail_views.roll_back, name="roll_back"),
    path("of/<str:key>/<str:guid>/", detail_views.show_snapshot, name="snapshot"),
    path("of/<str:key>/<str:guid>/<str:act>/", detail_views.run_act, name="snapshot_act"),
]
