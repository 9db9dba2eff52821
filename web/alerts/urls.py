"""Addresses of health: alerts, how they are told, what disks said."""

from __future__ import annotations

from django.urls import path

from web.alerts import mail_views, severity_views, views
from web.disks import health_views, selftest_views, standby_views

urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/mail/", mail_views.settings, name="mail_settings"),
    path("alerts/mail/test/", mail_views.test, name="mail_test"),
    path("alerts/kinds/", severity_views.kinds, name="alert_kinds"),
    path("alerts/tests/", selftest_views.plan, name="self_test_plan"),
    path("alerts/<int:pk>/", views.alert, name="alert"),
    path("alerts/<int:pk>/act/", views.act, name="alert_act"),
    path("disks/<str:key>/health/", health_views.health, name="disk_health"),
    path("disks/<str:key>/health/test/", health_views.self_test, name="self_test"),
    path("disks/<str:key>/health/tests/", selftest_views.take_part, name="take_part"),
    path("disks/<str:key>/health/sleep/", standby_views.set_sleep, name="set_sleep"),
    path("disks/<str:key>/health/back/", health_views.put_back, name="put_back"),
    path("disks/<str:key>/health/accept/", health_views.accept, name="accept_values"),
]
