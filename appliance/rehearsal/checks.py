"""What speaks against a rehearsal of a rebuild: it needs an empty, healthy and redundant pool. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from appliance.errors import Reason
from appliance.facts.box import Facts, Pool, Vdev
from appliance.layout.geometry import MIB
from appliance.pools.vdevs.online_offline import can_do_without
from appliance.rehearsal.result import read_disk_out
from appliance.shares.settings import setting_of
from appliance.zfs import system_datasets, vdev_tree
from appliance.zfs.vdev_tree import Place

MOST_EMPTY = MIB  # bytes that an empty top folder takes up, whatever the sectors


def check_pool(pool: Pool, facts: Facts) -> Iterator[Reason]:
    """Whether the pool is empty, healthy and redundant."""
    yield from check_content(pool, facts)
    yield from check_condition(pool, facts)
    if not any(True for _place in possible_places(pool)):
        yield Reason(
            "rehearsal-not-redundant",
            "{pool} has no disk that it can do without. Only the disks of a mirror or raidz can be rebuilt.",
            pool=pool.name,
        )


def check_content(pool: Pool, facts: Facts) -> Iterator[Reason]:
    """Refuse a pool that anything is stored in or set up for. What the agent finds in it is in its detail."""
    name, root = pool.name, facts.dataset(pool.name)
    others = [one.name for one in facts.datasets if one.pool == name and one.name != name]
    if read_disk_out(name, facts.datasets):
        yield Reason(
            "rehearsal-unfinished",
            "A rehearsal of {pool} was interrupted. Clean it up on the page of the pool, then start again.",
            pool=name,
        )
    elif others:
        yield Reason(
            "rehearsal-pool-has-folders",
            "{folder} is in {pool}. A rebuild can be rehearsed only while a pool is empty.",
            folder=others[0],
            pool=name,
        )
    detail = facts.detail(pool.guid)
    found = detail.content[0] if detail and detail.content else ""
    if not others and (found or (root and (root.used_by_data > MOST_EMPTY or root.used_by_snapshots > MOST_EMPTY))):
        yield Reason(
            "rehearsal-pool-has-files",
            "{pool} has files or snapshots{found}. A rebuild can be rehearsed only while a pool is empty.",
            pool=name,
            found=f" ({found})" if found else "",
        )
    setting = setting_of(root) if root else None
    if root and ((setting and setting.anything) or root.backup or root.copy_of):
        yield Reason(
            "rehearsal-pool-shared",
            "The top folder of {pool} is shared or backed up. A rebuild can be rehearsed only before a pool is in use.",
            pool=name,
        )
    if pool.checkpoint:
        yield Reason("rehearsal-checkpoint", "{pool} has a checkpoint. Discard it first.", pool=name)


def check_condition(pool: Pool, facts: Facts) -> Iterator[Reason]:
    """Refuse a pool that is not healthy, is at work, or cannot be written to."""
    root = facts.dataset(pool.name)
    busy = pool.rebuilding or any(work.under_way for work in pool.work)
    if busy:
        yield Reason(
            "rehearsal-pool-busy", "{pool} is being scrubbed or changed. Wait until that has ended.", pool=pool.name
        )
    broken = [device for device in pool.devices() if device.role == "normal" and device.state != "ONLINE"]
    if pool.state != "ONLINE" or pool.errors or broken:
        yield Reason(
            "rehearsal-pool-not-healthy",
            "{pool} is not healthy, so no disk is taken out of it. Look at its page.",
            pool=pool.name,
        )
    if root is None or root.locked or root.readonly:
        yield Reason(
            "rehearsal-pool-locked", "{pool} is locked or read-only, so nothing can be written to it.", pool=pool.name
        )
    if system_datasets.carries_system(pool.name, facts.datasets):
        yield Reason("rehearsal-pool-of-system", "This box's own system is on {pool}.", pool=pool.name)


def possible_places(pool: Pool) -> Iterator[Place]:
    """The disks that can be rehearsed with: those of mirrors and raidz that the pool can do without now."""
    for place in vdev_tree.list_places(pool):
        in_group = place.parent is not None and place.parent.kind in {"mirror", "raidz"}
        if in_group and place.leaf and place.role == "normal" and can_do_without(pool, place):
            yield place


def check_disk(place: Place | None, path: str, facts: Facts, pool: Pool) -> Iterator[Reason]:
    """Whether a vdev is that very disk, and nothing else is on it."""
    disk = facts.disk(path)
    if place is None or place not in possible_places(pool) or vdev_tree.link_of(place.vdev) != Path(path).name:
        yield Reason(
            "rehearsal-disk-not-member", "Choose a disk of a mirror or raidz of {pool}.", field="vdev", pool=pool.name
        )
    elif disk is None:
        yield Reason("rehearsal-disk-missing", "The disk does not answer. Look at its cables.", field="vdev")
    elif not is_whole_disk(place.vdev) or any(use.identity != str(pool.guid) for use in disk.uses):
        yield Reason(
            "rehearsal-disk-shared",
            "Something else than {pool} is on this disk, so it is not cleared. Choose another disk.",
            field="vdev",
            pool=pool.name,
        )


def is_whole_disk(device: Vdev) -> bool:
    """Whether ZFS has made the partition of a device itself, which then is the first of its disk."""
    return Path(device.path).name == f"{vdev_tree.link_of(device)}-part1" and not device.name.endswith("-part1")
