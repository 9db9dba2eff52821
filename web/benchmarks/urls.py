"""Addresses of measurements."""

from __future__ import annotations

from django.urls import path

from web.benchmarks import result_views, views

urlpatterns = [
    path("", views.sweeps, name="sweeps"),
    path("new/<slug:name>/", views.new, name="new_sweep"),
    path("start/", views.start, name="start_sweep"),
    path("<uuid:pk>/", result_views.sweep, name="sweep"),
    path("<uuid:pk>/with/<uuid:other>/", result_views.compare, name="compare_sweeps"),
    path("<uuid:pk>/over-time/", result_views.over_time, name="sweep_over_time"),
    path("<uuid:pk>/again/", views.again, name="sweep_again"),
    path("<uuid:pk>/act/<slug:what>/", views.act, name="act_sweep"),
    path("<uuid:pk>/forget/", views.forget, name="forget_sweep"),
    path("<uuid:pk>/export/<slug:form>/", result_views.export, name="export_sweep"),
]
