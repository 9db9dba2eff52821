"""Addresses of the page of the box."""

from __future__ import annotations

from django.urls import path

from web.box import language_views, log_views, mtu_views, settings_views, support_views, views

urlpatterns = [
    path("", views.show_box, name="box"),
    path("host-name/", settings_views.set_host_name, name="host_name"),
    path("language/", language_views.set_language, name="box_language"),
    path("ports/<str:name>/mtu/", mtu_views.set_mtu, name="set_mtu"),
    path("ports/<str:name>/mtu/keep/", mtu_views.keep_mtu, name="keep_mtu"),
    path("support/", support_views.show_support, name="support"),
    path("support/make/", support_views.make_bundle, name="make_bundle"),
    path("support/discard/", support_views.discard_bundle, name="discard_bundle"),
    path("support/<slug:key>/download/", support_views.download_bundle, name="download_bundle"),
    path("support/<slug:key>/<str:name>/", support_views.show_file, name="support_file"),
    path("time-servers/", settings_views.set_time_servers, name="time_servers"),
    path("time-zone/", settings_views.set_time_zone, name="time_zone"),
    path("log/", log_views.show_log, name="log"),
    path("power/<slug:act>/", views.review_power, name="review_power"),
]
