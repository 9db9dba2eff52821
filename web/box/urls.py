"""Addresses of the page of the box."""

from __future__ import annotations

from django.urls import path

from web.box import views

urlpatterns = [
    path("", views.show_box, name="box"),
    path("power/<slug:act>/", views.review_power, name="review_power"),
]
