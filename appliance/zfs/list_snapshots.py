"""Reading snapshots of the datasets that are asked for, line by line as ``zfs get`` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from appliance import command
from appliance.facts import user_properties
from appliance.facts.datasets import Snapshot
from appliance.zfs import json_output
from appliance.zfs.scan_status import parse_time
from appliance.zfs.status import parse_whole

# What Larder set comes last and is printed only where it is set on the snapshot itself (``-s local``): a snapshot
# inherits its folder's user properties, and one that was received brings those of another box, which may hold anything,
# also lines that look like another snapshot.
NUMBERS = ("guid", "createtxg", "creation", "used", "referenced", "written", "userrefs", "clones")
OWN = (user_properties.RUN, user_properties.TASK, user_properties.NOTE)
# Datasets a call: their names have to fit a command line.
AT_ONCE = 50
# Seconds without a word: it prints nothing before it has all of them.
SILENCE = 300.0
PASSING = re.compile(r"zfs-diff-\d+-[0-9a-f]{16}")


def snapshots_from(lines: Iterable[bytes]) -> Iterator[Snapshot]:
    """The snapshots of ``zfs get -H -p -s local,none -o name,property,value`` of NUMBERS and OWN, one at a time.

    Each begins with its guid. A line that fits nowhere is the rest of a value with a line
    break in it, and is passed over.
    """
    name, values = "", dict[str, str]()
    for line in lines:
        found, _tab, rest = line.decode(errors="replace").partition("\t")
        key, _tab, value = rest.partition("\t")
        if key == NUMBERS[0] and "@" in found:
            if name:
                yield snapshot_of(name, values)
            name, values = found, {}
        if found == name and (key in NUMBERS or key in OWN) and key not in values:
            values[key] = "" if value == "-" else value
    if name:
        yield snapshot_of(name, values)


def snapshot_of(name: str, values: Mapping[str, str]) -> Snapshot:
    return Snapshot(
        name=name,
        guid=parse_whole(values.get("guid")),
        txg=parse_whole(values.get("createtxg")),
        created=parse_time(parse_whole(values.get("creation"))) or datetime.fromtimestamp(0, UTC),
        used=parse_whole(values.get("used")),
        referenced=parse_whole(values.get("referenced")),
        written=parse_whole(values.get("written")),
        holds=parse_whole(values.get("userrefs")),
        clones=tuple(sorted(filter(None, values.get("clones", "").split(",")))),
        run=values.get(user_properties.RUN, ""),
        note=values.get(user_properties.NOTE, ""),
        task=values.get(user_properties.TASK, ""),
    )


def is_diff_snapshot(snapshot: Snapshot) -> bool:
    """Whether ``zfs diff`` made it for itself and is still reading it; it goes by itself
    (libzfs_diff.c, zfs_ioctl.c)."""
    return snapshot.holds > 0 and PASSING.fullmatch(snapshot.short) is not None


def list_snapshots(datasets: Iterable[str]) -> Iterator[Snapshot]:
    """The snapshots of these datasets, without those below, each dataset's in the order of transaction groups.

    One after the other, as they are printed: there may be hundreds of thousands.
    A dataset that has gone is passed over. Raises Failed.
    """
    names = list(datasets)
    for start in range(0, len(names), AT_ONCE):
        yield from read_some(names[start : start + AT_ONCE])


def read_some(names: Sequence[str]) -> Iterator[Snapshot]:
    # Not zfs list: with -j the command itself holds everything twice, and without it tells no property's source.
    wanted = ",".join((*NUMBERS, *OWN))
    argv = [
        "zfs",
        "get",
        "-H",
        "-p",
        "-d",
        "1",
        "-t",
        "snapshot",
        "-s",
        "local,none",
        "-o",
        "name,property,value",
        "--",
        wanted,
        *names,
    ]
    seen: set[str] = set()
    try:
        for snapshot in snapshots_from(command.read_lines(argv, silence=SILENCE)):
            seen.add(snapshot.dataset)
            yield snapshot
    except command.CommandTimedOut:
        raise
    except command.CommandFailed as failed:
        if "does not exist" not in failed.said:
            raise
        if len(names) > 1:
            for name in names:
                if name not in seen:  # it tells of the others before it fails
                    yield from read_some([name])


def list_in_batches(datasets: Iterable[str], kind: str, columns: str) -> Iterator[Mapping[str, Any]]:
    """What ``zfs list`` says of the snapshots, or bookmarks, of these datasets, a few datasets at a time.
    Raises Failed."""
    names = list(datasets)
    for start in range(0, len(names), AT_ONCE):
        yield from some(names[start : start + AT_ONCE], kind, columns)


def some(names: list[str], kind: str, columns: str) -> Iterator[Mapping[str, Any]]:
    # Not --json-int: it cuts guids above 2^63 - 1. -d 1: a dataset's own snapshots.
    argv = ["zfs", "list", "-j", "-p", "-t", kind, "-d", "1", "-o", columns, "--", *names]
    try:
        listing = json_output.read_json(argv, timeout=120, may_be_empty=True)
    except command.CommandTimedOut:
        raise
    except command.CommandFailed as failed:
        if "does not exist" not in failed.said:
            raise
        if len(names) > 1:
            for name in names:
                yield from some([name], kind, columns)
        return
    if listing:
        yield listing
