"""The password of the mail server: in a file that only Larder can read, never in a row, a page or a log."""

from __future__ import annotations

import os
from pathlib import Path

from appliance import places


def file() -> Path:
    return places.STATE / "mail-password"


def keep(password: str) -> None:
    """Write it whole or not at all; empty forgets it."""
    if not password:
        file().unlink(missing_ok=True)
        return
    beside = file().with_suffix(".new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w") as out:
        out.write(password)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(file())


def read() -> str:
    try:
        return file().read_text()
    except OSError:
        return ""


def known() -> bool:
    return file().exists()
