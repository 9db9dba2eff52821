"""Addresses of a pool's care: checks, schedules, reports, history, settings. Below ``pools/<key>/``."""

from __future__ import annotations

from django.urls import path

from web.pools import care_views, past_views

urlpatterns = [
    path("scrub/", care_views.scrub, name="scrub_pool"),
    path("scrub/stop/", care_views.stop_scrub, name="stop_scrub"),
    path("trim/", care_views.trim, name="trim_pool"),
    path("schedule/<str:kind>/", care_views.schedule, name="schedule"),
    path("settings/", care_views.settings, name="pool_settings"),
    path("reports/", past_views.reports, name="pool_reports"),
    path("history/", past_views.history, name="pool_history"),
    path("events/", past_views.events, name="pool_events"),
]
