"""Small files that are whole after a power cut: the old content or the new, never part of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put content in place of what is there; on the disk when this returns. Raises OSError.

    It is written beside, under a name that nobody follows elsewhere, and renamed. One writer at a time.
    """
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as new:
        new.write(content)
        os.fchmod(new.fileno(), mode)
        new.flush()
        os.fsync(new.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def remove_if_possible(path: Path) -> None:
    """Remove a file if it is there; what cannot be removed (a folder in its place) is no reason to stop."""
    with suppress(OSError):
        path.unlink()


def sync_folder(folder: Path) -> None:
    """Have what was made, renamed or removed in a folder on the disk. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
