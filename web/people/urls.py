"""Addresses of people."""

from __future__ import annotations

from django.urls import path

from web.people import views

urlpatterns = [
    path("", views.people, name="people"),
    path("new/", views.create, name="create_person"),
    path("<str:name>/password/", views.password, name="person_password"),
]
