"""Grow a pool: add a vdev, expand a raidz by a disk, use larger disks completely."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from appliance.errors import Reason
from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool, Vdev
from appliance.formatting import disk_label, size_text
from appliance.layout.choices import LAYOUT_NAMES
from appliance.layout.descriptions import describe_survival
from appliance.layout.geometry import LEAST_DISKS, MIB, expanded_bytes, parity_of, usable_bytes
from appliance.message import Message
from appliance.operation import Plan, command_step, if_lost, never
from appliance.pools import properties
from appliance.pools.create import MOST_DISKS
from appliance.pools.vdevs import retry
from appliance.pools.vdevs.aux_rules import FUZZ
from appliance.pools.vdevs.base import (
    VdevChange,
    VdevOperation,
    ashift_option,
    check_no_checkpoint,
    check_not_rebuilding,
    check_not_removing,
    check_sector_size,
    sector_warning,
)
from appliance.pools.vdevs.groups import data_groups, group_layout, group_width, has_parity, least_parity, usual_ashift
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place

METASLAB = 2**34  # the largest step in which a group grows (vdev_metaslab_set_size)
MOST_RAIDZ = 255  # children that ZFS allows in a raidz


class AddVdev(VdevOperation, tag="add-vdev"):
    """Add a group of disks (vdev) for data. It cannot be removed again from a pool that has a raidz or draid.

    ``less_protection``: the user was warned and agrees that the pool will survive fewer failures.
    """

    needs_proof = if_lost

    layout: Literal["stripe", "mirror", "raidz1", "raidz2", "raidz3"]
    disks: tuple[str, ...]
    less_protection: bool = False

    @property
    def new_disks(self) -> tuple[str, ...]:
        return self.disks

    @property
    def title(self) -> str:
        return Message("Add disks to {pool}", pool=self.pool)

    def check_change(self, facts: Facts, pool: Pool) -> Iterator[Reason]:
        yield from self.check_new_disks(facts)
        least = LEAST_DISKS[self.layout]
        if self.layout == "stripe" and len(self.disks) > 1:
            yield Reason("stripe-several-disks", "Add disks without protection one at a time.", field="layout")
        elif self.disks and len(self.disks) < least:
            yield Reason(
                "disks-too-few-for-vdevs",
                "{layout} needs at least {count} disks in each group.",
                field="layout",
                layout=LAYOUT_NAMES[self.layout],
                count=least,
            )
        if len(self.disks) > MOST_DISKS:
            yield Reason("disks-too-many", "Choose at most {count} disks.", field="disks", count=MOST_DISKS)
        for disk in self.chosen_disks(facts):
            yield from check_sector_size(disk, usual_ashift(pool))
        yield from check_not_removing(pool)
        if pool.had_removal and self.layout.startswith("raidz"):
            # spa_vdev_add() refuses it, when the disks are erased already.
            yield Reason(
                "pool-had-removal",
                "A group was removed from {pool} before, and ZFS adds no raidz to such a pool. Choose a "
                "mirror or a single disk.",
                field="layout",
                pool=self.pool,
            )
        if self.lowers_protection(pool) and not self.less_protection:
            yield Reason(
                "protection-lowered",
                "A pool is as safe as its weakest group. {pool} survives {now} in each group. The new group "
                "would survive {then}, and losing one group loses the whole pool. Agree to that below, or "
                "choose a layout that survives as much.",
                field="less_protection",
                pool=self.pool,
                now=describe_survival(least_parity(pool)),
                then=describe_survival(self.new_parity()),
            )

    def new_parity(self) -> int:
        """How many failed disks the new group survives."""
        return parity_of(self.layout, max(len(self.disks), 1))

    def lowers_protection(self, pool: Pool) -> bool:
        """Whether the new group survives fewer failed disks than any group that is there."""
        return self.new_parity() < least_parity(pool)

    def needs_force(self, pool: Pool, sizes: list[int]) -> bool:
        """Whether zpool needs -f: layout, width or sizes differ from the pool's other groups (check_replication)."""
        now = {(group_layout(group), group_width(group) if group.children else 0) for group in data_groups(pool)}
        new = (self.layout, len(self.disks) if self.layout != "stripe" else 0)
        return now != {new} or (self.layout != "stripe" and bool(sizes) and max(sizes) - min(sizes) > FUZZ)

    def plan(self, facts: Facts) -> Plan:
        pool = facts.pool(self.pool)
        disks = self.chosen_disks(facts)
        sizes, ashift = [disk.size for disk in disks], usual_ashift(pool)
        argv = ["zpool", "add", *(["-f"] if pool and self.needs_force(pool, sizes) else []), *ashift_option(ashift)]
        argv += ["--", self.pool, *([] if self.layout == "stripe" else [self.layout]), *self.disks]
        group = (
            Message(
                "a {layout_names} of {count} disks", layout_names=LAYOUT_NAMES[self.layout].lower(), count=len(disks)
            )
            if self.layout != "stripe"
            else Message("a single disk without protection")
        )
        return self.plan_with_disks(
            facts,
            command_step(
                "add",
                Message("Add {group}", group=group),
                argv,
                affects=self.disks,
                runner=retry.run_with_udev_retry,
                timeout=600,
            ),
            summary=Message(
                "{pool} gets {group}, about {usable_bytes} more for files.",
                pool=self.pool,
                group=group,
                usable_bytes=size_text(usable_bytes(self.layout, [sizes], ashift)),
            ),
            warnings=self.plan_warnings(facts, pool, ashift),
            undo=self.undo_text(pool),
            details={
                Message("Survives then"): Message(
                    "{survived} in the new group", survived=describe_survival(self.new_parity())
                )
            },
        )

    def is_for_good(self, pool: Pool | None) -> bool:
        """Whether the group can never be removed again: only a pool without parity lets it go (zpool-remove(8))."""
        return self.layout.startswith("raidz") or (pool is not None and has_parity(pool))

    def undo_text(self, pool: Pool | None) -> str:
        return (
            Message("The group cannot be removed again: the pool keeps these disks for good.")
            if self.is_for_good(pool)
            else Message("The group can be removed again as long as the others have room for its data.")
        )

    def plan_warnings(self, facts: Facts, pool: Pool | None, ashift: int) -> Iterator[str]:
        if pool and self.lowers_protection(pool):
            yield Message(
                "A pool is as safe as its weakest group. {pool} survives {survived} in each group. The new "
                "group would survive {survived_2}, and losing one group loses the whole pool.",
                pool=self.pool,
                survived=describe_survival(least_parity(pool)),
                survived_2=describe_survival(self.new_parity()),
            )
        if self.is_for_good(pool):
            yield Message("This is for good: no group can be removed from a pool that has a raidz or draid.")
        yield from sector_warning(self.chosen_disks(facts), ashift)


class ExpandRaidz(VdevChange, tag="expand-raidz"):
    """Add one disk to a raidz. ZFS spreads the data over all disks, which takes as long as reading all of it."""

    needs_proof = if_lost

    disk: str

    @property
    def new_disks(self) -> tuple[str, ...]:
        return (self.disk,)

    @property
    def title(self) -> str:
        return Message("Expand {pool} by a disk", pool=self.pool)

    def load_extra_facts(self, facts: Facts) -> Facts:
        """The features of the pool, where they were not read with the rest. Raises Failed."""
        return facts if facts.properties_of(self.pool) else replace(facts, properties=properties.read_properties())

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        if place.vdev.kind != "raidz":
            yield Reason(
                "vdev-not-raidz",
                "Only a raidz can be expanded by a disk. Add a copy to a mirror, or another group to the pool.",
                field="vdev",
            )
            return
        yield from check_no_checkpoint(pool)
        if any(child.state not in vdev_state.WORKING or child.children for child in place.vdev.children):
            yield Reason(
                "raidz-incomplete",
                "A raidz can only be expanded while all its disks work. Replace the failed disk first.",
                field="vdev",
            )
        yield from check_not_rebuilding(pool)
        # Both as spa_vdev_attach() has it: it would refuse when the disk is erased already.
        if any(work.kind == "expand" and work.under_way for work in pool.work):
            yield Reason(
                "raidz-expanding",
                "{pool} is being expanded already. Wait until that has ended.",
                field="vdev",
                pool=self.pool,
            )
        if properties.lacks_expansion(facts.properties_of(self.pool)):
            yield Reason(
                "raidz-expansion-off",
                "The feature {feature} is off in {pool}, and without it ZFS cannot expand a raidz. Upgrade "
                "the pool on its page first.",
                field="vdev",
                feature="raidz_expansion",
                pool=self.pool,
            )
        if group_width(place.vdev) >= MOST_RAIDZ:
            yield Reason(
                "raidz-too-wide",
                "This raidz has {count} disks, the most that ZFS allows.",
                field="vdev",
                count=MOST_RAIDZ,
            )
        yield from self.check_new_disks(facts)
        yield from self.check_fit(facts, Place(place.vdev.children[0], (place.vdev,)))

    def plan(self, facts: Facts) -> Plan:
        place = self.find_place(facts) or Place(Vdev("raidz1-0", "raidz", self.vdev, "UNKNOWN"))
        group, new = place.vdev, facts.disk(self.disk)
        into = disk_label(new) if new else self.disk
        before, shown, rewritten = expansion_sizes(group)
        name = group.name.rsplit("-", 1)[0]
        return self.plan_with_disks(
            facts,
            command_step(
                "expand",
                Message("Add {into} to the {name}", into=into, name=name),
                ["zpool", "attach", *ashift_option(group.ashift), "--", self.pool, group.name, self.disk],
                affects=[self.disk],
                runner=retry.run_with_udev_retry,
                timeout=600,
            ),
            summary=Message(
                "The {name} of {group_width} disks becomes one of {group_width_2}. It survives as many "
                "failed disks as before, and files stay available.",
                name=name,
                group_width=group_width(group),
                group_width_2=group_width(group) + 1,
            ),
            warnings=(
                Message("This cannot be undone: a raidz never becomes narrower."),
                Message(
                    "ZFS reads and rewrites all of its data, which can take days. The new space appears at "
                    "the end. A restart of the box only pauses it."
                ),
                *sector_warning(self.chosen_disks(facts), group.ashift),
            ),
            undo=Message("It cannot be undone."),
            details={
                Message("Space for files now"): Message("about {before}", before=size_text(before)),
                Message("Afterwards"): Message("about {shown}", shown=size_text(shown)),
                Message("For files written afterwards"): Message(
                    "as if it held {rewritten}: they need less parity. Older files keep theirs until they "
                    "are written again.",
                    rewritten=size_text(rewritten),
                ),
            },
        )


def expansion_sizes(group: Vdev) -> tuple[int, int, int]:
    """Bytes for files of a raidz now, those that ZFS will show with one more disk, and those
    of a new raidz that wide."""
    layout, ashift, disks = group_layout(group), group.ashift or 12, group_width(group)
    smallest = min((child.size for child in group.children if child.size), default=0)
    whole = smallest + 10 * MIB  # the pool knows the size of the partition, and the advisor counts from whole disks
    now = [[whole] * disks]
    return (
        usable_bytes(layout, now, ashift),
        expanded_bytes(layout, now, ashift),
        usable_bytes(layout, [[whole] * (disks + 1)], ashift),
    )


class AutoexpandVdev(VdevChange, tag="autoexpand-vdev"):
    """Let a group use its disks completely after each of them was replaced by a larger one."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Use the larger disks of {pool}", pool=self.pool)

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        if place.above or place.role != "normal":
            yield Reason("vdev-not-group", "Choose a whole group of disks.", field="vdev")
            return
        away = [vdev_tree.vdev_label(device, facts) for device in place.vdev.devices() if device.state != "ONLINE"]
        if away:
            yield Reason(
                "vdev-incomplete",
                "All disks of the group must work for this. {disk} does not.",
                field="vdev",
                disk=away[0],
            )
        elif not autoexpand_gain(place.vdev):
            yield Reason(
                "vdev-not-expandable",
                "The smallest disk of {group} is used completely already, so there is nothing to gain.",
                field="vdev",
                group=vdev_tree.group_label(place.vdev),
            )

    def plan(self, facts: Facts) -> Plan:
        place = self.find_place(facts)
        devices = list(place.vdev.devices()) if place else []
        return Plan(
            summary=Message(
                "{pool} uses its larger disks completely: about {autoexpand_gain} more, before parity.",
                pool=self.pool,
                autoexpand_gain=size_text(autoexpand_gain(place.vdev) if place else 0),
            ),
            steps=(
                command_step(
                    "grow",
                    Message("Let ZFS use all of each disk"),
                    [
                        "zpool",
                        "online",
                        "-e",
                        "--",
                        self.pool,
                        *(vdev_tree.online_operand(device) for device in devices),
                    ],
                ),
            ),
            identity=self.identity(facts),
            warnings=(Message("Smaller disks cannot be used as replacements afterwards."),),
            undo=Message("It cannot be undone."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        place = self.find_place(facts)
        return place is not None and not autoexpand_gain(place.vdev)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "{pool} is as safe as before. Look at its page, and start again if the space has not grown.", pool=self.pool
        )


def autoexpand_gain(group: Vdev) -> int:
    """Bytes, before parity, that a group would gain by using its disks completely; 0 where it does already.

    ZFS reports it (``ex_dev_size``). Where it does not, each member is compared with the size that the group needs;
    less than a metaslab more does not count.
    """
    if group.expandable:
        return group.expandable
    spare = min((device.size - device.replace_size for device in group.devices() if device.replace_size), default=0)
    return spare * max(len(group.children), 1) if spare > METASLAB + 64 * MIB else 0
