"""Addresses of disks: the bays, one disk, its health, its self-tests."""

from __future__ import annotations

from django.urls import path

from web.disks import bay_views, burn_in_views, health_views, selftest_views, standby_views, views

urlpatterns = [
    path("disks/", views.disk_list, name="disks"),
    path("disks/bays/", bay_views.bays, name="bays"),
    path("disks/<str:key>/", views.disk_page, name="disk"),
    path("disks/<str:key>/wipe/", views.review_erase, name="wipe_disk"),
    path("disks/<str:key>/burn-in/", burn_in_views.new_burn_in, name="new_burn_in"),
    path("disks/<str:key>/burn-in/start/", burn_in_views.start_burn_in, name="start_burn_in"),
    path("disks/burn-ins/<uuid:pk>/", burn_in_views.show_burn_in, name="burn_in"),
    path("disks/burn-ins/<uuid:pk>/act/<str:what>/", burn_in_views.act_burn_in, name="act_burn_in"),
    path("disks/<str:key>/locate/", bay_views.locate, name="locate_disk"),
    path("disks/<str:key>/health/", health_views.disk_health, name="disk_health"),
    path("disks/<str:key>/health/test/", health_views.self_test, name="self_test"),
    path("disks/<str:key>/health/tests/", selftest_views.set_participation, name="take_part"),
    path("disks/<str:key>/health/sleep/", standby_views.set_sleep, name="set_sleep"),
    path("disks/<str:key>/health/back/", health_views.put_back, name="put_back"),
    path("disks/<str:key>/health/accept/", health_views.accept_values, name="accept_values"),
    path("alerts/tests/", selftest_views.selftest_plan, name="self_test_plan"),
]
