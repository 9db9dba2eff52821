"""Addresses of health: alerts, how they are told, what disks said."""

from __future__ import annotations

from django.urls import path

from web.alerts import disk_views, kind_views, mail_views, sleep_views, testing_views, views

urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/mail/", mail_views.settings, name="mail_settings"),
    path("alerts/mail/test/", mail_views.test, name="mail_test"),
    path("alerts/kinds/", kind_views.kinds, name="alert_kinds"),
    path("alerts/tests/", testing_views.plan, name="self_test_plan"),
    path("alerts/<int:pk>/", views.alert, name="alert"),
    path("alerts/<int:pk>/act/", views.act, name="alert_act"),
    path("disks/<str:key>/health/", disk_views.health, name="disk_health"),
    path("disks/<str:key>/health/test/", disk_views.self_test, name="self_test"),
    path("disks/<str:key>/health/tests/", testing_views.take_part, name="take_part"),
    path("disks/<str:key>/health/sleep/", sleep_views.set_sleep, name="set_sleep"),
    path("disks/<str:key>/health/back/", disk_views.put_back, name="put_back"),
    path("disks/<str:key>/health/accept/", disk_views.accept, name="accept_values"),
]
