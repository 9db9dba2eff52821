"""URLs below ``pools/<key>/``: checks, schedules, more room, rehearsal, reports, history and settings."""

from __future__ import annotations

from django.urls import path

from web.pools import growth_views, history_views, maintenance_views, rehearsal_views

urlpatterns = [
    path("scrub/", maintenance_views.scrub_pool, name="scrub_pool"),
    path("scrub/stop/", maintenance_views.stop_scrub, name="stop_scrub"),
    path("trim/", maintenance_views.trim_pool, name="trim_pool"),
    path("schedule/<str:kind>/", maintenance_views.edit_schedule, name="schedule"),
    path("settings/", maintenance_views.pool_settings, name="pool_settings"),
    path("rehearsal/", rehearsal_views.rehearse_rebuild, name="rehearse_rebuild"),
    path("growth/", growth_views.show_growth, name="pool_growth"),
    path("growth/price/", growth_views.set_price, name="disk_price"),
    path("growth/plan/", growth_views.begin_plan, name="begin_growth"),
    path("growth/plan/end/", growth_views.end_plan, name="end_growth"),
    path("reports/", history_views.show_reports, name="pool_reports"),
    path("history/", history_views.show_history, name="pool_history"),
    path("events/", history_views.show_events, name="pool_events"),
]
