"""Addresses of imports of files from another NAS."""

from __future__ import annotations

from django.urls import path

from web.imports import views

urlpatterns = [
    path("", views.list_imports, name="imports"),
    path("new/", views.choose_source, name="choose_import_source"),
    path("new/<str:protocol>/", views.add_import, name="add_import"),
    path("<str:key>/", views.show_import, name="import"),
    path("<str:key>/test/", views.test_import, name="test_import"),
    path("<str:key>/host-key/", views.confirm_import_key, name="confirm_import_key"),
    path("<str:key>/password/", views.set_import_password, name="set_import_password"),
    path("<str:key>/run/", views.run_import, name="run_import"),
    path("<str:key>/report/", views.download_report, name="import_report"),
    path("<str:key>/remove/", views.remove_import, name="remove_import"),
]
