"""URLs below ``pools/<key>/``: checks, schedules, reports, history and settings."""

from __future__ import annotations

from django.urls import path

from web.pools import history_views, maintenance_views

urlpatterns = [
    path("scrub/", maintenance_views.scrub_pool, name="scrub_pool"),
    path("scrub/stop/", maintenance_views.stop_scrub, name="stop_scrub"),
    path("trim/", maintenance_views.trim_pool, name="trim_pool"),
    path("schedule/<str:kind>/", maintenance_views.edit_schedule, name="schedule"),
    path("settings/", maintenance_views.pool_settings, name="pool_settings"),
    path("reports/", history_views.show_reports, name="pool_reports"),
    path("history/", history_views.show_history, name="pool_history"),
    path("events/", history_views.show_events, name="pool_events"),
]
