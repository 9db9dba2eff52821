"""Holding ZFS's memory (the ARC) small while something is measured, so that little data tells of the disks all the same.

Unlike ``primarycache=metadata`` it leaves reading ahead as it is in daily use. It is the whole box's memory, so it goes
back to what it was with the last case that wanted it small. Where that stands is gone with a restart, as the limit is.

``zfs_arc_max`` and ``zfs_arc_min`` (zfs(4)) are taken where they fit: the most has to lie above the least, and 0 changes
nothing once the module runs (``arc_tuning_update``), so what was in force is written before what stood there.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from appliance.benchmarks.case import memory_for
from appliance.errors import Failed
from appliance.layout.geometry import MIB
from appliance.system import atomic_file, locks, paths
from appliance.zfs import kstat

PARAMETERS = Path("/sys/module/zfs/parameters")
FLOOR = 32 * MIB  # the least that zfs_arc_min is taken at


class ArcLimit(msgspec.Struct, kw_only=True):
    """What was in force before, in bytes; what stood in the parameters; and by token what each case wants."""

    most: int
    least: int
    texts: dict[str, str]
    wanted: dict[str, int] = {}


def limit_path() -> Path:
    return paths.RUN / "sweeps" / "memory"


def hold_lock() -> AbstractContextManager[None]:
    """One process at a time: cases of different disks may begin and end together."""
    return locks.held(("ZFS's memory",), lambda _name: None)


def limit_arc(token: str, size: int) -> int:
    """Hold memory to what suits so much data until ``release``; the bytes. Raises Failed where ZFS does not take it."""
    limit_path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with hold_lock():
        held = read_limit() or read_current_limit()
        held.wanted[token] = memory_for(size)
        atomic_file.write(limit_path(), msgspec.json.encode(held))
        apply_limit(held)
        if read_arc_bounds()[0] > memory_for(size):
            raise Failed(
                "ZFS did not take the limit of its memory. Measure with more data, or keep memory out of reads"
            )
        return memory_for(size)


def release_limit(token: str) -> None:
    """Let it be as it was, unless another case wants it small. Harmless to repeat. Raises Failed."""
    if not limit_path().exists():
        return
    with hold_lock():
        held = read_limit()
        if held is None:
            return
        held.wanted.pop(token, None)
        if held.wanted:
            atomic_file.write(limit_path(), msgspec.json.encode(held))
            apply_limit(held)
            return
        write_parameter("zfs_arc_max", str(held.most))
        write_parameter("zfs_arc_min", str(held.least))
        for name, text in held.texts.items():
            write_parameter(name, text)
        limit_path().unlink()


def read_limit() -> ArcLimit | None:
    """None where nobody holds it. Raises Failed."""
    try:
        return msgspec.json.decode(limit_path().read_bytes(), type=ArcLimit)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Failed("The note of how much memory ZFS had cannot be read. A restart of the box mends it", str(error)) from error  # fmt: skip


def read_arc_bounds() -> tuple[int, int]:
    """The most and the least in bytes. Raises Failed."""
    found = kstat.counters("".join(kstat.texts([kstat.KSTAT / "arcstats"])))
    if not found.get("c_max"):
        raise Failed("ZFS does not say how much memory it may take")
    return found["c_max"], found.get("c_min", 0)


def read_current_limit() -> ArcLimit:
    most, least = read_arc_bounds()
    try:
        texts = {name: (PARAMETERS / name).read_text().strip() for name in ("zfs_arc_max", "zfs_arc_min")}
    except OSError as error:
        raise Failed("How much memory ZFS takes cannot be looked at here", str(error)) from error
    return ArcLimit(most=most, least=least, texts=texts)


def apply_limit(held: ArcLimit) -> None:
    """What suits the case with the least data; the least of memory goes down before the most."""
    write_parameter("zfs_arc_min", str(FLOOR))
    write_parameter("zfs_arc_max", str(min(held.wanted.values())))


def write_parameter(name: str, text: str) -> None:
    try:
        (PARAMETERS / name).write_text(text)
    except OSError as error:
        raise Failed("How much memory ZFS takes cannot be changed here", str(error)) from error
