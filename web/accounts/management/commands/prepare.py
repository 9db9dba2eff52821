"""Before anything serves: the secret key, both databases, and the set-up code while there is no administrator."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from appliance import places
from web.accounts import first_run


class Command(BaseCommand):
    """Idempotent; run at each start by larder-prepare.service."""

    help = __doc__ or ""

    def handle(self, *_args: Any, **_options: Any) -> None:
        key = places.STATE / "secret-key"
        if not key.exists():
            beside = key.with_suffix(".new")
            beside.touch(mode=0o600)
            beside.write_text(secrets.token_urlsafe(50))
            beside.replace(key)
        settings.SECRET_KEY = key.read_text().strip()
        call_command("migrate", database="default", interactive=False, verbosity=0)
        call_command("migrate", "inventory", database="inventory", interactive=False, verbosity=0)
        call_command("createcachetable", database="inventory", verbosity=0)
        if first_run.is_set_up():
            first_run.CODE.unlink(missing_ok=True)
        else:
            first_run.make_code()
