"""Addresses of people, groups, and of who may use a folder."""

from __future__ import annotations

from django.urls import path

from web.users import access_views, group_views, views

urlpatterns = [
    path("people/", views.people, name="people"),
    path("people/new/", views.create, name="create_person"),
    path("people/<str:name>/account/", views.person, name="person"),
    path("people/<str:name>/password/", views.password, name="person_password"),
    path("people/<str:name>/name/", views.rename, name="rename_person"),
    path("people/<str:name>/switch/", views.switch, name="switch_person"),
    path("people/<str:name>/remove/", views.remove, name="remove_person"),
    path("groups/new/", group_views.create, name="create_group"),
    path("groups/<str:name>/members/", group_views.group, name="group"),
    path("groups/<str:name>/remove/", group_views.remove, name="remove_group"),
    path("folders/<str:key>/access/", access_views.access, name="folder_access"),
]
