"""The sector size (ashift) of each group of a pool. ``zpool status`` does not tell it, and it never changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed
from appliance.facts import vdev_state
from appliance.facts.box import Pool, Vdev

# A group's ashift by its guid. A process that lives long asks once for each group.
_known: dict[int, int] = {}


def fill_ashift(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """The pools with the ashift of their groups. A pool that cannot tell keeps 0; asking one
    that has stopped could hang."""
    return tuple(replace(pool, vdevs=tuple(with_ashift(pool))) for pool in pools)


def with_ashift(pool: Pool) -> Iterator[Vdev]:
    if pool.state in vdev_state.WORKING and any(
        vdev.guid not in _known for vdev in pool.vdevs if vdev.role not in {"spare", "cache"}
    ):
        _known.update(read_ashift(pool.name))
    for vdev in pool.vdevs:
        yield replace(vdev, ashift=_known.get(vdev.guid, 0))


def read_ashift(name: str) -> dict[int, int]:
    """Guid and ashift of every vdev of a pool (vdevprops(7)); empty where ZFS does not answer."""
    argv = ["zpool", "get", "-H", "-p", "-o", "name,property,value", "guid,ashift", name, "all-vdevs"]
    try:
        # Status 1 where a spare or cache is among them, which has no such properties; what it printed is right.
        return parse_ashift(command.run(argv, timeout=10, accept=(0, 1)).stdout)
    except Failed:
        return {}


def parse_ashift(text: str) -> dict[int, int]:
    """From lines of name, property and value between tabs."""
    guids: dict[str, int] = {}
    ashifts: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition("\t")
        kind, _, value = rest.partition("\t")
        if value.isascii() and value.isdigit():
            (guids if kind == "guid" else ashifts)[name] = int(value)
    return {guid: ashifts[name] for name, guid in guids.items() if 9 <= ashifts.get(name, 0) <= 16}
