"""Addresses of looking after one dataset. Below ``folders/<key>/``."""

from __future__ import annotations

from django.urls import path

from web.datasets import action_views, encryption_views, settings_views, volume_views

urlpatterns = [
    path("settings/", settings_views.settings, name="folder_settings"),
    path("settings/<str:name>/", settings_views.change, name="folder_setting"),
    path("settings/<str:name>/inherit/", settings_views.inherit, name="inherit_setting"),
    path("rename/", action_views.rename, name="rename_folder"),
    path("do/<str:act>/", action_views.act, name="folder_act"),
    path("destroy/", action_views.destroy, name="destroy_folder"),
    path("space/", action_views.people, name="folder_people"),
    path("key/", encryption_views.key, name="folder_key"),
    path("key/<str:act>/", encryption_views.act, name="folder_key_act"),
    path("grow/", volume_views.grow, name="grow_volume"),
]
