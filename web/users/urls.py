"""Addresses of users, groups, and of who may use a folder."""

from __future__ import annotations

from django.urls import path

from web.users import access_views, group_views, views

urlpatterns = [
    path("users/", views.list_users, name="users"),
    path("users/new/", views.create_user, name="create_user"),
    path("users/<str:name>/account/", views.show_user, name="user"),
    path("users/<str:name>/password/", views.set_password, name="user_password"),
    path("users/<str:name>/name/", views.rename_user, name="rename_user"),
    path("users/<str:name>/switch/", views.enable_user, name="switch_user"),
    path("users/<str:name>/remove/", views.remove_user, name="remove_user"),
    path("groups/new/", group_views.create_group, name="create_group"),
    path("groups/<str:name>/members/", group_views.edit_group, name="group"),
    path("groups/<str:name>/remove/", group_views.remove_group, name="remove_group"),
    path("folders/<str:key>/access/", access_views.set_access, name="folder_access"),
]
