"""Which files of a pool cannot be repaired (``zpool status -v``); only root may read that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance import names
from appliance.request import Request
from appliance.zfs import json_output

MOST_NAMED = 200
LONGEST = 1000


def from_json(found: Mapping[str, Any], pool: str) -> dict[str, object]:
    """``count`` of damaged things, and the names of the first; hostile text.

    The pool's own records are named too, as ``<metadata>:<0x47>`` (zpool_obj_to_path); a file's name begins otherwise.
    """
    raw = (found.get("pools") or {}).get(pool) or {}
    listed = raw.get("errlist") or []
    files = list(dict.fromkeys(str(name)[:LONGEST] for name in listed)) if isinstance(listed, list) else []
    return {"count": len(files), "files": files[:MOST_NAMED]}


def read_damaged_files(pool: str) -> dict[str, object]:
    """Now. Raises Failed."""
    argv = ["zpool", "status", "-j", "--json-int", "-v", "--", names.existing_pool(pool)]
    return from_json(json_output.read_json(argv, timeout=60), pool)


class ReadDamage(Request, tag="read-damage"):
    """Which files of a pool could not be repaired."""

    pool: str

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)

    def read(self) -> object:
        return read_damaged_files(self.pool)
