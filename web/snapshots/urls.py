"""Addresses of snapshots."""

from __future__ import annotations

from django.urls import path

from web.snapshots import one_views, views

urlpatterns = [
    path("", views.everything, name="snapshots"),
    path("destroy/", views.destroy, name="destroy_snapshots"),
    path("of/<str:key>/", views.of_dataset, name="snapshots_of"),
    path("of/<str:key>/take/", views.take, name="take_snapshot"),
    path("of/<str:key>/policy/", views.policy, name="snapshot_policy"),
    path("of/<str:key>/policy/follow/", views.follow, name="follow_policy"),
    path("of/<str:key>/<str:guid>/", one_views.one, name="snapshot"),
    path("of/<str:key>/<str:guid>/<str:act>/", one_views.act, name="snapshot_act"),
]
