"""How far a plan is that replaces the disks of a pool by larger ones, by what ZFS shows now. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from appliance.facts.box import Pool, Vdev
from appliance.layout.growth import read_group
from appliance.pools.vdevs.expand import autoexpand_gain
from appliance.pools.vdevs.groups import data_groups
from appliance.zfs.vdev_tree import partition_bytes

LARGE_ENOUGH = 0.97  # of the planned size: disks that are sold as one size differ by a little


class PlanState(msgspec.Struct, frozen=True):
    """``left``: the guids of the disks that are still to be replaced, in their order. ``running``: that of
    the one whose replacement is being rebuilt, 0 for none. ``grows``: a group whose disks are all larger
    and not used completely yet."""

    total: int
    left: tuple[int, ...]
    running: int = 0
    grows: int = 0
    unused: bool = (
        False  # a group has less space than its disks, which ZFS may tell a moment later than that they are there
    )

    @property
    def done(self) -> int:
        return self.total - len(self.left)

    @property
    def next(self) -> int:
        """The guid of the next disk; 0 where one is under way or none is left."""
        return 0 if self.running or not self.left else self.left[0]

    @property
    def is_complete(self) -> bool:
        return not (self.left or self.running or self.grows or self.unused)


def read_plan(pool: Pool, targets: Sequence[int], size: int) -> PlanState:
    """How far the plan is that is to replace the disks with these guids by ones of ``size`` bytes.

    A disk is replaced once the pool has it no more, and what came in its place is as large as planned: that has another
    guid. When a plan begins, every disk that is too small is one of its targets; so one that is too small later, and is
    no target, came in the place of a target that is gone.
    """
    groups = data_groups(pool)
    members = [member for group in groups for member in members_of(group)]
    present = {device.guid for member in members for device in member.devices()}
    under_way = {member.children[0].guid for member in members if member.kind == "replacing"}
    waiting = [guid for guid in targets if guid in present]
    disks = [next(member.devices()) for member in members]  # of a replacement the old one, of a spare the one it is for
    needed = partition_bytes(size) * LARGE_ENOUGH
    small = (disk for disk in disks if disk.kind in {"disk", "file"} and disk.size < needed)
    too_small = [disk.guid for disk in small if disk.guid not in targets]
    left = (*waiting, *too_small[: len(targets) - len(waiting)])
    running = next((guid for guid in left if guid in under_way), 0)
    grows = 0 if pool.rebuilding else next((group.guid for group in groups if autoexpand_gain(group)), 0)
    return PlanState(len(targets), left, running, grows, any(map(has_unused_space, groups)))


def has_unused_space(vdev: Vdev) -> bool:
    """Whether a group has room for at least two more metaslabs than it has; not where its space is not known."""
    group = read_group(vdev)
    return group is not None and vdev.space > 0 and group.size - vdev.space >= 2 * group.slab


def members_of(group: Vdev) -> tuple[Vdev, ...]:
    """The members of a group; a disk by itself, or what stands in its place, is its own."""
    return group.children if group.kind in {"mirror", "raidz", "draid"} else (group,)


def read_seats(pool: Pool) -> dict[str, list[str]]:
    """Which disk sits where: the guids, as text, of the members of each data group in ZFS's order, by that of the
    group; by "" disks that are a group of one. Of a replacement the old disk, of a spare the one that it is for."""
    seats: dict[str, list[str]] = {}
    for group in data_groups(pool):
        key = str(group.guid) if members_of(group) is group.children else ""
        seats.setdefault(key, []).extend(str(next(member.devices()).guid) for member in members_of(group))
    return seats


def find_moves(before: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Which disk took whose place between two looks: guids of the old and the new one.

    ZFS puts a new disk where the old one was. Where members were attached and detached instead, only a group that lost
    one and got one says which; nothing is told of the others.
    """
    known, there = ({guid for row in seats.values() for guid in row} for seats in (before, now))
    found: list[tuple[str, str]] = []
    for key, row in before.items():
        new = now.get(key, ())
        gone, came = [guid for guid in row if guid not in there], [guid for guid in new if guid not in known]
        pairs = [(old, to) for old, to in zip(row, new, strict=False) if old in gone and to in came]
        if len(row) == len(new) and len(pairs) == len(gone):
            found += pairs
        elif len(gone) == len(came) == 1:
            found.append((gone[0], came[0]))
    return found
