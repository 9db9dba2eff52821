"""Reading snapshots: ``zfs list`` of the datasets that are asked for, a few at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from appliance import command
from appliance.dataset import Snapshot
from appliance.zfs.longwork import moment
from appliance.zfs.status import parse, whole

COLUMNS = "name,guid,createtxg,creation,used,referenced,written,userrefs,clones,larder:run,larder:note"
# Datasets a call: their names have to fit a command line, and what it prints has to fit a small box's memory.
AT_ONCE = 50
PASSING = re.compile(r"zfs-diff-\d+-[0-9a-f]{16}")


def snapshots_from(listing: Mapping[str, Any]) -> Iterator[Snapshot]:
    """The snapshots of a ``zfs list -j -p -t snapshot`` object with at least COLUMNS.

    What Larder set counts only where it is set on the snapshot itself: a snapshot inherits its folder's user properties,
    and one that was received brings those of another box.
    """
    for name, raw in (listing.get("datasets") or {}).items():
        properties = raw.get("properties") or {}

        def value(key: str, of: Mapping[str, Any] = properties) -> Any:
            found = (of.get(key) or {}).get("value", "")
            return "" if found == "-" else found

        def own(key: str, of: Mapping[str, Any] = properties) -> str:
            kind = ((of.get(key) or {}).get("source") or {}).get("type")
            return str((of.get(key) or {}).get("value", "")) if kind == "LOCAL" else ""

        yield Snapshot(
            name=str(name),
            guid=whole(value("guid")),
            txg=whole(value("createtxg")),
            created=moment(whole(value("creation"))) or datetime.fromtimestamp(0, UTC),
            used=whole(value("used")),
            referenced=whole(value("referenced")),
            written=whole(value("written")),
            holds=whole(value("userrefs")),
            clones=tuple(sorted(filter(None, str(value("clones")).split(",")))),
            run=own("larder:run"),
            note=own("larder:note"),
        )


def passing(snapshot: Snapshot) -> bool:
    """Whether ``zfs diff`` made it for itself and is still reading it; it goes by itself (libzfs_diff.c, zfs_ioctl.c)."""
    return snapshot.holds > 0 and PASSING.fullmatch(snapshot.short) is not None


def read(datasets: Iterable[str]) -> Iterator[Snapshot]:
    """The snapshots of these datasets, without those below; a dataset that has gone is passed over. Raises Failed."""
    for listing in listings(datasets, "snapshot", COLUMNS):
        yield from snapshots_from(listing)


def listings(datasets: Iterable[str], kind: str, columns: str) -> Iterator[Mapping[str, Any]]:
    """What ``zfs list`` says of the snapshots, or bookmarks, of these datasets, a few datasets at a time. Raises Failed."""
    names = list(datasets)
    for start in range(0, len(names), AT_ONCE):
        yield from some(names[start : start + AT_ONCE], kind, columns)


def some(names: list[str], kind: str, columns: str) -> Iterator[Mapping[str, Any]]:
    # Not --json-int: it cuts guids above 2^63 - 1. -d 1: a dataset's own snapshots.
    argv = ["zfs", "list", "-j", "-p", "-t", kind, "-d", "1", "-o", columns, "--", *names]
    try:
        result = command.run(argv, timeout=120)
    except command.CommandTimedOut:
        raise
    except command.CommandFailed as failed:
        if "does not exist" not in failed.said:
            raise
        if len(names) > 1:
            for name in names:
                yield from some([name], kind, columns)
        return
    if result.stdout.strip():
        yield parse(result.stdout, "zfs list")
