"""Remove a vdev from a pool."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.errors import Reason
from appliance.facts.box import Facts, Pool, Vdev
from appliance.formatting import binary_text, size_text
from appliance.layout.geometry import slop_bytes
from appliance.message import Message
from appliance.operation import Plan, command_step, never
from appliance.pools.vdevs.base import VdevChange, check_no_checkpoint, check_not_rebuilding, check_not_removing
from appliance.pools.vdevs.groups import data_groups, has_parity
from appliance.zfs import vdev_tree


class RemoveVdev(VdevChange, tag="remove-vdev"):
    """Remove a spare, a log, a cache, or from a pool without parity a group of disks for data, special or dedup."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Take a part out of {pool}", pool=self.pool)

    def check_place(self, facts: Facts, pool: Pool, place: vdev_tree.Place) -> Iterator[Reason]:
        yield from check_no_checkpoint(pool)
        if (
            place.parent
            and place.parent.kind == "spare"
            and any(vdev.role == "spare" and vdev.guid == self.vdev for vdev in pool.vdevs)
        ):
            yield Reason(
                "spare-in-use", "This spare stands in for another disk. Give the spare back first.", field="vdev"
            )
        elif place.above:
            yield Reason(
                "vdev-not-whole",
                "Only a whole group can be removed. To remove one copy of a mirror, choose its disk.",
                field="vdev",
            )
        elif place.vdev.removing:
            yield Reason("vdev-removing", "This group is being removed already.", field="vdev")
        elif moves_data(place):
            # Before the rest: what the other groups have room for is known only when the first is empty.
            yield from list(check_not_removing(pool)) or check_data_group(pool, place.vdev)

    def plan(self, facts: Facts) -> Plan:
        place = self.find_place(facts)
        group = place.vdev if place else Vdev("", "disk", self.vdev, "UNKNOWN")
        has_data = place is not None and moves_data(place)
        name = vdev_tree.group_label(group) if group.children else vdev_tree.vdev_label(group, facts)
        return Plan(
            summary=Message(
                "ZFS moves the data on {name} ({used}) to the other groups, then frees its disks. Files stay "
                "available.",
                name=name,
                used=size_text(group.used),
            )
            if has_data
            else Message(
                "{name} is removed from {pool}, and its disks become free. They hold no data that is not "
                "also elsewhere.",
                name=name,
                pool=self.pool,
            ),
            steps=(
                command_step(
                    "remove",
                    Message("Remove {name} from {pool}", name=name, pool=self.pool),
                    ["zpool", "remove", "--", self.pool, str(self.vdev)],
                    timeout=600,
                ),
            ),
            identity=self.identity(facts),
            warnings=(
                Message(
                    "The pool becomes smaller by {space}. A table of the moved data stays in memory for as "
                    "long as the pool exists, about {memory}.",
                    space=size_text(group.space),
                    memory=binary_text(max(group.used // 2000, 2**20)),
                ),
            )
            if has_data
            else (),
            undo=Message("The disks can be added again afterwards."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        place = self.find_place(facts)
        return facts.pool(self.pool) is not None and (place is None or place.vdev.removing)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.probe(step, facts):
            return Message("It is being removed, or is gone already. Look at the pool's page.")
        return Message("It is still part of {pool}. Look at the pool's page, then start again.", pool=self.pool)


def moves_data(place: vdev_tree.Place) -> bool:
    """Whether ZFS has to move what is there first: a special or dedup group holds the only copy of it too."""
    return place.role not in {"log", "cache", "spare"}


def check_data_group(pool: Pool, group: Vdev) -> Iterator[Reason]:
    """Whether ZFS can remove a group for data, special or dedup (zpool-remove(8)).

    The pool must have no parity and one sector size. The other groups must have room for the data and,
    where the group is one of those for data, for twice the space that ZFS reserves
    (``spa_vdev_remove_top_check`` in ``vdev_removal.c``).
    """
    groups = [vdev for vdev in pool.vdevs if vdev.role in {"normal", group.role}]
    others = [other for other in data_groups(pool) if other.guid != group.guid]
    reserve = 2 * slop_bytes(sum(vdev.space for vdev in groups)) if group.role == "normal" else 0
    if has_parity(pool):
        yield Reason("pool-has-raidz", "ZFS cannot remove a group from a pool that has a raidz or draid.", field="vdev")
    elif not others:
        yield Reason(
            "vdev-last", "This is the only group of the pool. To free its disks, destroy the pool.", field="vdev"
        )
    elif len({vdev.ashift for vdev in groups if vdev.ashift}) > 1:
        yield Reason(
            "sectors-differ",
            "The groups of this pool have different sector sizes, so ZFS cannot remove this one.",
            field="vdev",
        )
    elif any(device.state != "ONLINE" for vdev in groups for device in vdev.devices()):
        yield Reason(
            "pool-incomplete",
            "A group can only be removed while every disk of the pool works. Replace the failed disk first.",
            field="vdev",
        )
    elif group.used + reserve > sum(max(other.space - other.used, 0) for other in others):
        yield Reason(
            "vdev-no-room",
            "The other groups have no room for the data of this group ({size}). Delete something first.",
            field="vdev",
            size=size_text(group.used),
        )
    else:
        yield from check_not_rebuilding(pool)
