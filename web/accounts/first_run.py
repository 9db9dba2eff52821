"""The first run: a code from the console lets one person, once, make the one administrator.

The code lies on a file system in memory, readable to Larder and root, and goes when it has been used.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from appliance.system import paths

CODE = paths.RUN / "inventory" / "setup-code"
# No letters that look like digits; 32 letters, 10 of them: 50 bits.
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
known_set_up = False


def is_set_up() -> bool:
    """Whether an administrator exists. Once true it stays true, so it is asked of the database only until then."""
    global known_set_up  # the one fact of a process that never changes back
    if not known_set_up:
        known_set_up = User.objects.filter(is_active=True).exists()
    return known_set_up


def make_code() -> str:
    """Write a new code, replacing an older one."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(10))
    code = f"{letters[:5]}-{letters[5:]}"
    CODE.parent.mkdir(parents=True, exist_ok=True)
    beside = CODE.with_suffix(".new")
    beside.touch(mode=0o600)
    beside.write_text(code)
    beside.replace(CODE)
    return code


def code_is_right(typed: str) -> bool:
    try:
        code = CODE.read_text().strip()
    except OSError:
        return False
    tidy = "".join(letter for letter in typed.upper() if letter.isalnum())
    return bool(code) and hmac.compare_digest(tidy.encode(), code.replace("-", "").encode())


def make_administrator(name: str, password: str) -> User | None:
    """The administrator, or None where somebody was first. The database lets one transaction at a time in here."""
    with transaction.atomic():
        if User.objects.exists():
            return None
        user = User.objects.create_superuser(name, password=password)
    CODE.unlink(missing_ok=True)
    return user


def until_set_up(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: before the first run every page leads to the set-up page, afterwards none does."""

    def middleware(request: HttpRequest) -> HttpResponse:
        free = request.path in {reverse("setup"), reverse("ready")}
        if not free and not is_set_up():
            return redirect("setup")
        return get_response(request)

    return middleware
