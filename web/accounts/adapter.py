"""How allauth serves one household: nobody signs up, nobody is mailed."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Accounts are made on the set-up page and nowhere else."""

    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": "This name and password do not go together. Nothing was changed; try again.",
        "too_many_login_attempts": "Too many attempts. Wait five minutes, then try again.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """The pages say what happened by themselves."""
