"""Addresses of benchmarks."""

from __future__ import annotations

from django.urls import path

from web.benchmarks import client_views, result_views, settings_views, views

urlpatterns = [
    path("", views.list_sweeps, name="benchmarks"),
    path("new/<slug:name>/", views.new_sweep, name="new_benchmark"),
    path("start/", views.start_sweep, name="start_benchmark"),
    path("client/", client_views.new_client_run, name="new_client_run"),
    path("client/begin/", client_views.begin_client_run, name="begin_client_run"),
    path("client/wire/", client_views.open_wire, name="open_wire"),
    path("client/setting/", settings_views.switch_setting, name="switch_setting"),
    path("client/finish/", client_views.finish_client_run, name="finish_client_run"),
    path("client/<uuid:pk>/", client_views.show_client_run, name="client_run"),
    path("client/<uuid:pk>/keep/", settings_views.keep_setting, name="keep_setting"),
    path("client/settings/<slug:tag>/back/", settings_views.put_setting_back, name="put_setting_back"),
    path("client/settings/<slug:tag>/forget/<str:port>/", settings_views.forget_port, name="forget_port"),
    path("client/<uuid:pk>/end-trial/", settings_views.end_trial, name="end_setting_trial"),
    path("client/<uuid:pk>/forget/", client_views.forget_client_run, name="forget_client_run"),
    path("<uuid:pk>/", result_views.show_sweep, name="benchmark"),
    path("<uuid:pk>/with/<uuid:other>/", result_views.compare_sweeps, name="compare_benchmarks"),
    path("<uuid:pk>/over-time/", result_views.over_time, name="benchmark_over_time"),
    path("<uuid:pk>/again/", views.repeat_sweep, name="benchmark_again"),
    path("<uuid:pk>/act/<slug:what>/", views.change_sweep, name="act_benchmark"),
    path("<uuid:pk>/forget/", views.forget_sweep, name="forget_benchmark"),
    path("<uuid:pk>/export/<slug:form>/", result_views.export_sweep, name="export_benchmark"),
]
