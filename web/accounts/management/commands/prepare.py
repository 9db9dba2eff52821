"""Before anything serves: the secret key, both databases, and the set-up code while there is no administrator.

A settings database that is damaged is replaced by its newest copy, or by an empty one: a
box without pages helps nobody.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connections
from django.utils import timezone

from appliance.system import atomic_file, paths
from web import language
from web.accounts import first_run
from web.system import database


class Command(BaseCommand):
    """Idempotent; run at each start by larder-prepare.service."""

    help = __doc__ or ""
    # They load every page and template, which takes two fifths of the time until the first page; tests run them.
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        key = paths.STATE / "secret-key"
        if not key.exists() or not key.read_text().strip():
            atomic_file.write_atomically(key, secrets.token_urlsafe(50).encode())
        settings.SECRET_KEY = key.read_text().strip()
        self.prepare_settings(Path(str(settings.DATABASES["default"]["NAME"])))
        call_command("migrate", "inventory", database="inventory", interactive=False, verbosity=0)
        call_command("createcachetable", database="inventory", verbosity=0)
        language.publish_language()
        if first_run.is_set_up():
            first_run.CODE.unlink(missing_ok=True)
        else:
            first_run.make_code()

    def prepare_settings(self, path: Path) -> None:
        """Bring the settings database to this version, restored first where it is damaged."""
        database.ensure_sound(path, timezone.now())
        try:
            call_command("migrate", database="default", interactive=False, verbosity=0)
        except DatabaseError as problem:  # a quick check does not see everything
            if not database.is_damage(problem.__cause__):
                raise
            connections["default"].close()
            database.restore_copy(path, timezone.now(), str(problem))
            call_command("migrate", database="default", interactive=False, verbosity=0)
