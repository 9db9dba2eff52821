"""What ZFS counts while it works, from ``/proc/spl/kstat/zfs``: does this box ask for a log or a
cache device, has a pool stopped?

The counters begin at the start of the box. ``arcstats`` tells how often memory answered a read; ``zil`` how many bytes
somebody waited for (``zil.h``: indirect, copied and needcopy are what commits wrote); each ``objset-*`` below a pool
how many bytes were written in all. Reading them opens no disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from appliance import command
from appliance.errors import Failed
from appliance.facts.box import Caching
from appliance.layout.geometry import GIB, MIB

KSTAT = Path("/proc/spl/kstat/zfs")
DEMANDED = ("demand_data", "demand_metadata")
COMMITTED = ("zil_itx_indirect_bytes", "zil_itx_copied_bytes", "zil_itx_needcopy_bytes")
ENOUGH_READS = 10_000
ENOUGH_WRITTEN = GIB
STOPPED = "SUSPENDED"


def parse_counters(text: str) -> dict[str, int]:
    """The named numbers of a kstat; its two lines of heading and what is no number are passed over."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2].isdigit():
            found[words[0]] = int(words[2])
    return found


def caching_from(arc: dict[str, int], zil: dict[str, int], written: int) -> Caching:
    """Shares in whole percent, and only where enough has happened since the start to mean anything."""
    hits = sum(arc.get(f"{kind}_hits", 0) + arc.get(f"{kind}_iohits", 0) for kind in DEMANDED)
    reads = hits + sum(arc.get(f"{kind}_misses", 0) for kind in DEMANDED)
    committed = sum(zil.get(name, 0) for name in COMMITTED)
    return Caching(
        hit_percent=hits * 100 // reads if reads >= ENOUGH_READS else None,
        sync_percent=min(committed * 100 // written, 100) if written >= ENOUGH_WRITTEN else None,
        memory=arc.get("c_max", 0) // MIB * MIB,
    )


def read_texts(paths: Iterable[Path]) -> Iterable[str]:
    """The contents of those files that can be read; a dataset may be gone meanwhile."""
    for path in paths:
        try:
            yield path.read_text()
        except OSError:
            continue


def is_stopped(pool: str) -> bool:
    """Whether a pool waits for its disks (SUSPENDED). No command of ZFS is asked: it could wait as well."""
    return "".join(read_texts([KSTAT / pool / "state"])).strip() == STOPPED


def read_states() -> dict[str, str]:
    """The state of each imported pool as the kernel names it, by the pool's name."""
    return {path.parent.name: "".join(read_texts([path])).strip() for path in sorted(KSTAT.glob("*/state"))}


def find_stopped() -> set[str]:
    """The pools that wait for their disks; as ``is_stopped``, of all that are imported."""
    return {pool for pool, state in read_states().items() if state == STOPPED}


def fails_for_all(failed: Failed, dataset: str) -> bool:
    """Whether a failure is not that of this dataset alone, so that trying the next is no use:
    ZFS does not answer, or the pool has stopped."""
    return isinstance(failed, command.CommandTimedOut) or is_stopped(dataset.split("/", 1)[0])


def read_kstat() -> Caching:
    """Now; all unknown where the module is not loaded."""
    arc, zil = ("".join(read_texts([KSTAT / name])) for name in ("arcstats", "zil"))
    written = sum(parse_counters(text).get("nwritten", 0) for text in read_texts(KSTAT.glob("*/objset-*")))
    return caching_from(parse_counters(arc), parse_counters(zil), written)
