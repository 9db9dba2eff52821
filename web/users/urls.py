"""Addresses of users, groups, and of who may use a folder."""

from __future__ import annotations

from django.urls import path

from web.users import access_views, group_views, views

urlpatterns = [
    path("people/", views.list_users, name="people"),
    path("people/new/", views.create_user, name="create_person"),
    path("people/<str:name>/account/", views.show_user, name="person"),
    path("people/<str:name>/password/", views.set_password, name="person_password"),
    path("people/<str:name>/name/", views.rename_user, name="rename_person"),
    path("people/<str:name>/switch/", views.enable_user, name="switch_person"),
    path("people/<str:name>/remove/", views.remove_user, name="remove_person"),
    path("groups/new/", group_views.create_group, name="create_group"),
    path("groups/<str:name>/members/", group_views.edit_group, name="group"),
    path("groups/<str:name>/remove/", group_views.remove_group, name="remove_group"),
    path("folders/<str:key>/access/", access_views.set_access, name="folder_access"),
]
