"""Addresses of jobs."""

from __future__ import annotations

from django.urls import path

from web.jobs import views

urlpatterns = [
    path("", views.list_jobs, name="jobs"),
    path("confirm/", views.confirm_job, name="confirm"),
    path("<uuid:pk>/", views.show_job, name="job"),
    path("<uuid:pk>/stop/", views.stop_job, name="stop_job"),
    path("<uuid:pk>/acknowledge/", views.acknowledge_job, name="acknowledge_job"),
    path("<uuid:pk>/again/", views.plan_again, name="again_job"),
]
