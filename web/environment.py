"""Settings from the environment, typed, with loud failure; a secret may stand in a file (``NAME_FILE``)."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str) -> str:
    return os.environ.get(name, default)


def flag(name: str, *, default: bool) -> bool:
    found = os.environ.get(name, "").lower()
    if found in {"", "0", "1", "true", "false"}:
        return {"1": True, "true": True, "0": False, "false": False}.get(found, default)
    raise ImproperlyConfigured(f"{name} is {found!r}; it should be 1 or 0")


def secret(name: str, file: Path) -> str:
    """The secret of that name, from the environment or from its file.
    Raises ImproperlyConfigured where it is nowhere."""
    if found := os.environ.get(name):
        return found
    path = Path(os.environ.get(f"{name}_FILE", str(file)))
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name} is not set and {path} cannot be read; run manage.py prepare first"
        ) from error
