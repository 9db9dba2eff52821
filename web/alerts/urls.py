"""Addresses of alerts, and of how they are sent."""

from __future__ import annotations

from django.urls import path

from web.alerts import mail_views, severity_views, views

urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/mail/", mail_views.settings, name="mail_settings"),
    path("alerts/mail/test/", mail_views.test, name="mail_test"),
    path("alerts/kinds/", severity_views.kinds, name="alert_kinds"),
    path("alerts/<int:pk>/", views.alert, name="alert"),
    path("alerts/<int:pk>/act/", views.act, name="alert_act"),
]
