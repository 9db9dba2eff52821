"""Settings that are a file each, named by their id: ``ID.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

import msgspec


class Record(Protocol):
    @property
    def id(self) -> str: ...


Kind = TypeVar("Kind", bound=Record)


def read_records(folder: Path, kind: type[Kind]) -> list[Kind]:
    """All of a folder. A file that cannot be read is left out."""
    try:
        files = sorted(folder.glob("*.json"))
    except OSError:
        return []
    return [found for file in files if (found := read_record(file, kind))]


def read_record(file: Path, kind: type[Kind]) -> Kind | None:
    """None where there is none, it cannot be read, or it is another one's."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if file.name == f"{found.id}.json" else None
