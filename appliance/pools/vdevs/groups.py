"""What can be said of the groups of disks in a pool."""

from __future__ import annotations

from appliance.facts.box import Pool, Vdev


def data_groups(pool: Pool) -> list[Vdev]:
    """The top-level vdevs for data, without log, cache, spare and special."""
    return [vdev for vdev in pool.vdevs if vdev.role == "normal"]


def has_parity(pool: Pool) -> bool:
    """Whether a group of the pool is a raidz or draid: then ZFS can remove no group with data from it."""
    return any(group.kind in {"raidz", "draid"} for group in pool.vdevs)


def group_layout(group: Vdev) -> str:
    """A group's layout as CreatePool names it: ``raidz2``, ``mirror``, ``stripe``."""
    if group.kind in {"mirror", "spare", "replacing"}:
        return "mirror" if group.kind == "mirror" else "stripe"
    return f"raidz{group.parity}" if group.kind == "raidz" else group.kind if group.children else "stripe"


def usual_ashift(pool: Pool | None) -> int:
    """The largest ashift of the pool's data groups; 12 where it is unknown."""
    return max((group.ashift for group in data_groups(pool)), default=0) or 12 if pool else 12


def least_parity(pool: Pool) -> int:
    """How many failed disks the weakest group of a pool survives."""
    return min((group.parity for group in data_groups(pool)), default=0)


def group_width(group: Vdev) -> int:
    """The number of disks in a group."""
    return len(group.children) or 1
