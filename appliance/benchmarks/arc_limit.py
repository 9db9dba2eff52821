"""Limit the ARC while a case runs, so that little data is enough to measure the disks and not memory.

Unlike ``primarycache=metadata`` this keeps read-ahead as in daily use. The ARC belongs to the whole box, so
the old limit returns after the last case that needs a limit. The file that stores it disappears at a
restart, and so does the limit.

ZFS accepts ``zfs_arc_max`` and ``zfs_arc_min`` (zfs(4)) only if the maximum is above the minimum, and ignores 0 while
the module is loaded (``arc_tuning_update``). So ``release_limit`` writes the old values in bytes before the old texts.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from appliance.benchmarks.case import memory_for
from appliance.errors import Failed
from appliance.layout.geometry import MIB
from appliance.message import Message
from appliance.system import atomic_file, locks, paths
from appliance.zfs import kstat

PARAMETERS = Path("/sys/module/zfs/parameters")
FLOOR = 32 * MIB  # bytes; ZFS ignores a smaller zfs_arc_min


class ArcLimit(msgspec.Struct, kw_only=True):
    """The old limits in bytes, the old texts of the parameters, and the limit that each case wants, by token."""

    most: int
    least: int
    texts: dict[str, str]
    wanted: dict[str, int] = {}


def limit_path() -> Path:
    return paths.RUN / "sweeps" / "memory"


def hold_lock() -> AbstractContextManager[None]:
    """Lock against other processes: cases on different disks may start and end at the same time."""
    return locks.hold_locks(("ZFS's memory",))


def limit_arc(token: str, size: int) -> int:
    """Limit the ARC for ``size`` bytes of data until ``release_limit``. Returns the limit. Raises Failed."""
    limit_path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with hold_lock():
        held = read_limit() or read_current_limit()
        held.wanted[token] = memory_for(size)
        atomic_file.write_atomically(limit_path(), msgspec.json.encode(held))
        apply_limit(held)
        if read_arc_bounds()[0] > memory_for(size):
            raise Failed(
                Message("ZFS did not take the limit of its memory. Measure with more data, or keep memory out of reads")
            )
        return memory_for(size)


def release_limit(token: str) -> None:
    """Restore the old limit unless another case needs one. Harmless to repeat. Raises Failed."""
    if not limit_path().exists():
        return
    with hold_lock():
        held = read_limit()
        if held is None:
            return
        held.wanted.pop(token, None)
        if held.wanted:
            atomic_file.write_atomically(limit_path(), msgspec.json.encode(held))
            apply_limit(held)
            return
        write_parameter("zfs_arc_max", str(held.most))
        write_parameter("zfs_arc_min", str(held.least))
        for name, text in held.texts.items():
            write_parameter(name, text)
        limit_path().unlink()


def read_limit() -> ArcLimit | None:
    """The stored limit, or None. Raises Failed."""
    try:
        return msgspec.json.decode(limit_path().read_bytes(), type=ArcLimit)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Failed(
            Message("The note of how much memory ZFS had cannot be read. Restart the box to fix it"), str(error)
        ) from error


def read_arc_bounds() -> tuple[int, int]:
    """Maximum and minimum of the ARC in bytes. Raises Failed."""
    found = kstat.parse_counters("".join(kstat.read_texts([kstat.KSTAT / "arcstats"])))
    if not found.get("c_max"):
        raise Failed(Message("ZFS does not say how much memory it may take"))
    return found["c_max"], found.get("c_min", 0)


def read_current_limit() -> ArcLimit:
    most, least = read_arc_bounds()
    try:
        texts = {name: (PARAMETERS / name).read_text().strip() for name in ("zfs_arc_max", "zfs_arc_min")}
    except OSError as error:
        raise Failed(Message("How much memory ZFS takes cannot be looked at here"), str(error)) from error
    return ArcLimit(most=most, least=least, texts=texts)


def apply_limit(held: ArcLimit) -> None:
    """Set the limit of the case with the least data."""
    for path, text in limit_writes(min(held.wanted.values())):
        write_parameter(path.name, text)


def limit_writes(size: int) -> list[tuple[Path, str]]:
    """Files and texts that limit the ARC to ``size`` bytes. The minimum goes down before the maximum."""
    return [(PARAMETERS / "zfs_arc_min", str(FLOOR)), (PARAMETERS / "zfs_arc_max", str(size))]


def write_parameter(name: str, text: str) -> None:
    try:
        (PARAMETERS / name).write_text(text)
    except OSError as error:
        raise Failed(Message("How much memory ZFS takes cannot be changed here"), str(error)) from error
