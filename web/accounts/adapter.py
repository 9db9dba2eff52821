"""How allauth serves one household: nobody signs up, nobody is mailed."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import ratelimit
from allauth.usersessions.models import UserSession
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest

from web.accounts import proof, sign_in_log


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Accounts are made on the set-up page and nowhere else."""

    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": "This name and password do not go together. Nothing was changed; try again.",
        "too_many_login_attempts": "Too many attempts. Wait five minutes, then try again.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

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

    def authenticate(self, request: HttpRequest, **credentials: Any) -> AbstractBaseUser | None:
        """Who signs in; the agent comes to know the password of the first who does after an update."""
        user: AbstractBaseUser | None = super().authenticate(request, **credentials)
        if user is not None and (password := credentials.get("password")):
            proof.keep_first(password)
        return user

    def login(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        super().login(request, user)
        sign_in_log.note_success(user.get_username(), self.get_client_ip(request))

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Add none: each page says itself what happened."""
