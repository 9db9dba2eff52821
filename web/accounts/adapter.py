"""How allauth serves one household: nobody signs up, nobody is mailed."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest

from web.accounts import proof


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Accounts are made on the set-up page and nowhere else."""

    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": "This name and password do not go together. Nothing was changed; try again.",
        "too_many_login_attempts": "Too many attempts. Wait five minutes, then try again.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> AbstractBaseUser | None:
        """Who signs in; the agent comes to know the password of the first who does after an update."""
        user: AbstractBaseUser | None = super().authenticate(request, **credentials)
        if user is not None and (password := credentials.get("password")):
            proof.keep_first(password)
        return user

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """The pages say what happened by themselves."""
