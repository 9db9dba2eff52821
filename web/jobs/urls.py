"""Addresses of jobs."""

from __future__ import annotations

from django.urls import path

from web.jobs import views

urlpatterns = [
    path("", views.jobs, name="jobs"),
    path("confirm/", views.confirmed, name="confirm"),
    path("<uuid:pk>/", views.job, name="job"),
    path("<uuid:pk>/stop/", views.stop, name="stop_job"),
    path("<uuid:pk>/acknowledge/", views.acknowledge, name="acknowledge_job"),
    path("<uuid:pk>/again/", views.again, name="again_job"),
]
