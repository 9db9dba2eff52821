"""How often somebody may try to sign in. The rates are ``ACCOUNT_RATE_LIMITS`` in ``web/settings.py``."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import ratelimit
from allauth.usersessions.models import UserSession
from django.http import HttpRequest

from web.accounts import sign_in_log
from web.translation import lazy_text


class SignInThrottle(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Failures are counted and slowed down, so that passwords cannot be guessed and nobody can keep the owner out."""

    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "too_many_login_attempts": lazy_text("Too many attempts. Wait five minutes, then try again."),
    }

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Failures are counted by name and address: who fails under a name at one keeps nobody out at another."""
        return f"{super()._get_login_attempts_cache_key(request, **credentials)}\0{self.get_client_ip(request)}"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """By address, by name and address, and for the whole box; the last not where somebody is signed in already."""
        super().pre_authenticate(request, **credentials)
        if not self.is_known(request) and not ratelimit.consume(request, action="login_box", key="box", dry_run=True):
            raise self.validation_error("too_many_login_attempts")

    def authentication_failed(self, request: HttpRequest, **_credentials: Any) -> None:
        sign_in_log.note_failure(self.get_client_ip(request))
        if not self.is_known(request):
            ratelimit.consume(request, action="login_box", key="box")

    def is_known(self, request: HttpRequest) -> bool:
        """Whether somebody is signed in at the address that asks."""
        return any(row.exists() for row in UserSession.objects.filter(ip=self.get_client_ip(request))[:20])
