"""The copies on another computer of a recorded box: made up, and told as the agent tells what
``larder-peer`` lists there."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import Any

import msgspec
from django.utils import timezone

from appliance import snapshot_names
from appliance.backups.remote import requests
from appliance.backups.remote.answers import RemoteCopy
from appliance.backups.remote.send_backup import spell
from appliance.facts.copy_mark import CopyMark
from appliance.facts.user_properties import COPY_OF
from web.inventory import store

GB = 10**9
COMPUTER = "0badcafe"  # the others of the box say nothing
LONG = f"photos/{spell('the whole family since 1974, as it was scanned and sorted by Anna and Ben')}"


def copies_there() -> dict[str, RemoteCopy]:
    """By their names there: a tree whose folders have copies of different days, one that is
    encrypted, one that is cut off."""
    facts = store.facts()
    computer = facts.remote(COMPUTER)
    newest = computer.tested if computer and computer.tested else timezone.now()
    last, before, week, year = (newest - timedelta(days=days) for days in (0, 1, 8, 400))
    guids = count(501)
    originals = {f"tank/{name}": one.guid for name in ("photos", "papers") if (one := facts.dataset(f"tank/{name}"))}

    def copy(original: int, *runs: datetime, size: int = 3 * GB, raw: bool = False) -> RemoteCopy:
        made = [(next(guids), at) for at in runs]
        return RemoteCopy(
            {COPY_OF: CopyMark(original, raw).text, "guid": str(next(guids)), "type": "filesystem"},
            [(int(at.timestamp()), guid, snapshot_names.name_for(snapshot_names.BACKUP, at)) for guid, at in made],
            details={guid: (int(at.timestamp()), size) for guid, at in made},
        )

    return {
        "letters": copy(71),
        "papers": copy(originals.get("tank/papers", 72), year, week, last, raw=True),
        "photos": copy(originals.get("tank/photos", 73), year, week, size=300 * GB),
        "photos/2025": copy(74, week, before, size=41 * GB),
        LONG: copy(75, before, last),
    }


def answer(request: dict[str, Any]) -> object:
    """The facts of ``list-remote-copies`` or ``read-remote-copy``."""
    there = copies_there()
    if request["verb"] == "list-remote-copies":
        return msgspec.to_builtins(requests.list_copies(there))
    top = request["copy"]
    tree = {name: copy for name, copy in there.items() if f"{name}/".startswith(f"{top}/")}
    return msgspec.to_builtins(requests.copy_tree(tree, top, request["moment"]))
