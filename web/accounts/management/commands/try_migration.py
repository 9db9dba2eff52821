"""Whether this version can take over the settings of the box: it migrates a copy of them, which is removed again.

Run by deploy/install before an update is switched to. It ends with an error where the migration does not work.
The settings themselves are only read, while the former version uses them, and no other database is opened.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connections

from web.system import database


class Command(BaseCommand):
    """Leaves nothing behind, and clears away what a power cut has left of an earlier one."""

    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        path = Path(str(settings.DATABASES["default"]["NAME"]))
        folder = path.with_name("update-trial")
        shutil.rmtree(folder, ignore_errors=True)
        if not path.exists():
            return  # a new box
        folder.mkdir(mode=0o700)
        try:
            copy = folder / path.name
            try:
                copy_read_only(path, copy)
            except sqlite3.DatabaseError as problem:
                if database.is_damage(problem):
                    return  # the next start restores it, whichever version that is
                raise
            connections["default"].settings_dict["NAME"] = str(copy)
            call_command("migrate", database="default", interactive=False, verbosity=0)
        finally:
            connections["default"].close()
            shutil.rmtree(folder)


def copy_read_only(path: Path, copy: Path) -> None:
    """Copy a database that may be in use. Raises OSError where there is no room,
    sqlite3.Error where it cannot be read."""
    size = sum(part.stat().st_size for part in database.parts_of(path) if part.exists())
    # The copy, and what its migration writes anew.
    if shutil.disk_usage(copy.parent).free < 3 * size + database.ROOM:
        raise OSError("the system disk has no room for a copy of the settings")
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=20, isolation_level=None)) as source:
        source.execute("VACUUM INTO ?", [str(copy)])
