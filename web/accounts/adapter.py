"""How allauth serves one household: nobody signs up, nobody is mailed."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest

from web.accounts import proof, sign_in_log
from web.accounts.sign_in_throttle import SignInThrottle
from web.translation import lazy_text


class Adapter(SignInThrottle):
    """Accounts are made on the set-up page and nowhere else."""

    error_messages = {
        **SignInThrottle.error_messages,
        "username_password_mismatch": lazy_text(
            "This name and password do not go together. Nothing was changed; try again."
        ),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

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
