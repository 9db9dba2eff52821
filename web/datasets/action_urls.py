"""Addresses of the actions on one dataset, below ``folders/<key>/``."""

from __future__ import annotations

from django.urls import path

from web.datasets import action_views, encryption_views, settings_views, volume_views

urlpatterns = [
    path("settings/", settings_views.show_settings, name="folder_settings"),
    path("settings/<str:name>/", settings_views.change_setting, name="folder_setting"),
    path("settings/<str:name>/inherit/", settings_views.inherit_setting, name="inherit_setting"),
    path("rename/", action_views.rename_folder, name="rename_folder"),
    path("do/<str:act>/", action_views.review_action, name="folder_act"),
    path("destroy/", action_views.destroy_folder, name="destroy_folder"),
    path("space/", action_views.limit_space, name="folder_people"),
    path("key/", encryption_views.show_key, name="folder_key"),
    path("key/<str:act>/", encryption_views.review_key_action, name="folder_key_act"),
    path("grow/", volume_views.grow_volume, name="grow_volume"),
]
