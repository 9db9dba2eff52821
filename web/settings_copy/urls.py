"""Addresses of the settings in records."""

from __future__ import annotations

from django.urls import path

from web.settings_copy import views

urlpatterns = [
    path("<str:key>/write/", views.write_record, name="write_record"),
    path("<str:key>/<str:box>/settings/", views.show_settings, name="box_settings"),
]
