"""The password of the mail server: in a file that only Larder can read, never in a row, a page or a log."""

from __future__ import annotations

from pathlib import Path

from appliance.system import atomic_file, paths


def password_file() -> Path:
    return paths.STATE / "mail-password"


def store_password(password: str) -> None:
    """Write it whole or not at all; empty forgets it."""
    if password:
        atomic_file.write_atomically(password_file(), password.encode())
    else:
        password_file().unlink(missing_ok=True)


def read_password() -> str:
    try:
        return password_file().read_text()
    except OSError:
        return ""


def has_password() -> bool:
    return password_file().exists()
