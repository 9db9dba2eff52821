"""Addresses of alerts, and of how they are sent."""

from __future__ import annotations

from django.urls import path

from web.alerts import mail_views, severity_views, views

urlpatterns = [
    path("alerts/", views.alert_list, name="alerts"),
    path("alerts/mail/", mail_views.mail_settings, name="mail_settings"),
    path("alerts/mail/test/", mail_views.send_test, name="mail_test"),
    path("alerts/kinds/", severity_views.alert_kinds, name="alert_kinds"),
    path("alerts/<int:pk>/", views.alert_page, name="alert"),
    path("alerts/<int:pk>/act/", views.alert_action, name="alert_act"),
]
