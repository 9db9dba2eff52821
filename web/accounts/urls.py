"""Addresses of set-up, sign-in and sessions."""

from __future__ import annotations

from allauth.account.views import LoginView, LogoutView
from django.contrib.auth.decorators import login_not_required
from django.urls import path
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django.views.generic import RedirectView

from web.accounts import views

sign_in = require_http_methods(["GET", "POST"])(LoginView.as_view(template_name="accounts/login.html"))
sign_up = login_not_required(require_GET(RedirectView.as_view(pattern_name="account_login")))
urlpatterns = [
    path("setup/", views.set_up, name="setup"),
    path("login/", sign_in, name="account_login"),
    path("logout/", require_POST(LogoutView.as_view()), name="account_logout"),
    # allauth asks for this name; nobody signs up here.
    path("signup/", sign_up, name="account_signup"),
    path("account/sessions/", views.list_sessions, name="sessions"),
    path("account/sessions/<int:pk>/end/", views.end_session, name="end_session"),
    path("account/password/", views.change_password, name="password"),
    path("account/preferences/", views.edit_preferences, name="preferences"),
    path("account/commands/", views.show_commands, name="show_commands"),
]
