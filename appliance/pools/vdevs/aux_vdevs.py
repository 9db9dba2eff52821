"""Helpers of a pool beside its data: spare, log and cache disks; and taking parts out again."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.errors import Reason
from appliance.facts.box import Caching, Facts, Pool, Vdev
from appliance.formatting import disk_label, size_text
from appliance.layout.aux_devices import LOG_EVER_USED, cache_advice, log_advice
from appliance.layout.geometry import slop_bytes
from appliance.operation import Plan, command_step, if_lost, never
from appliance.pools.vdevs import aux_rules, retry
from appliance.pools.vdevs.base import VdevChange, VdevOperation, ashift_option, check_sector_size, sector_warning
from appliance.pools.vdevs.expand import data_groups, usual_ashift
from appliance.zfs import vdev_tree


class AddAuxVdev(VdevOperation):
    """Base of the three: disks that go in beside the data and can be taken out again at any time."""

    disks: tuple[str, ...]

    @property
    def new_disks(self) -> tuple[str, ...]:
        return self.disks

    def check_change(self, facts: Facts, pool: Pool) -> Iterator[Reason]:
        yield from self.check_new_disks(facts)
        for disk in self.chosen_disks(facts):
            yield from check_sector_size(disk, usual_ashift(pool))


class AddSpare(AddAuxVdev, tag="add-spare"):
    """Disks that wait, and stand in by themselves when another fails."""

    needs_proof = if_lost

    @property
    def title(self) -> str:
        return f"Add a spare to {self.pool}"

    def plan(self, facts: Facts) -> Plan:
        names = ", ".join(disk_label(disk) for disk in self.chosen_disks(facts))
        return self.plan_with_disks(
            facts,
            command_step(
                "add",
                f"Let {names} wait as a spare",
                [
                    "zpool",
                    "add",
                    *ashift_option(usual_ashift(facts.pool(self.pool))),
                    "--",
                    self.pool,
                    *aux_rules.aux_vdev_args((), (), self.disks),
                ],
                touches=self.disks,
                run=retry.run_with_udev_retry,
            ),
            summary=f"{names} waits, switched on but unused, and stands in by itself when a disk of {self.pool} fails. It adds no space.",
            warnings=self.plan_warnings(facts),
            undo="A spare that waits can be taken out at any time.",
        )

    def plan_warnings(self, facts: Facts) -> Iterator[str]:
        pool = facts.pool(self.pool)
        groups = data_groups(pool) if pool else []
        for disk in self.chosen_disks(facts):
            short = [place for group in groups for place in group_places(group) if vdev_tree.shortage(disk, place)]
            if short:
                yield f"{disk_label(disk)} is too small to stand in for {len(short)} of the disks of {self.pool}."
        if pool and pool.failures_left == 0 and all(not group.children for group in groups):
            yield f"{self.pool} has no copies, so there is nothing from which a spare could be filled. Add a copy instead."


def group_places(group: Vdev) -> Iterator[vdev_tree.Place]:
    if not group.children:
        yield vdev_tree.Place(group)
    for child in group.children:
        yield vdev_tree.Place(child, (group,))


class AddLog(AddAuxVdev, tag="add-log"):
    """A log device (SLOG) for writes that must be safe before they are answered; two disks are mirrored."""

    needs_proof = if_lost

    @property
    def title(self) -> str:
        return f"Add a log to {self.pool}"

    def check_change(self, facts: Facts, pool: Pool) -> Iterator[Reason]:
        yield from super().check_change(facts, pool)
        if len(self.disks) > aux_rules.MOST_LOGS:
            yield Reason(
                "log-too-wide",
                "A log has at most {count} disks. Two disks are a mirror already.",
                field="disks",
                count=aux_rules.MOST_LOGS,
            )

    def plan(self, facts: Facts) -> Plan:
        ashift = usual_ashift(facts.pool(self.pool))
        told = log_advice(Caching())
        return self.plan_with_disks(
            facts,
            command_step(
                "add",
                f"Add the log{', mirrored' if len(self.disks) > 1 else ''}",
                ["zpool", "add", *ashift_option(ashift), "--", self.pool, *aux_rules.aux_vdev_args(self.disks, (), ())],
                touches=self.disks,
                run=retry.run_with_udev_retry,
            ),
            summary=f"{self.pool} first writes to the log what a client wants to be safe at once (NFS, databases, virtual machines). Windows and Mac shares and plain copying hardly use it.",
            warnings=self.plan_warnings(facts, ashift),
            undo="The log can be taken out at any time; nothing is lost by it.",
            told={"It costs": told.costs, "It brings": told.brings},
        )

    def plan_warnings(self, facts: Facts, ashift: int) -> Iterator[str]:
        disks = self.chosen_disks(facts)
        yield from aux_rules.log_warnings(disks)
        if any(disk.size > 8 * LOG_EVER_USED for disk in disks):
            yield f"A log never uses more than about {size_text(LOG_EVER_USED)}; the rest of the disk lies unused."
        yield from sector_warning(disks, ashift)


class AddCache(AddAuxVdev, tag="add-cache"):
    """A cache device (L2ARC) for what is read again and again and does not fit into memory."""

    needs_proof = if_lost

    @property
    def title(self) -> str:
        return f"Add a cache to {self.pool}"

    def plan(self, facts: Facts) -> Plan:
        disks = self.chosen_disks(facts)
        told = cache_advice(Caching(), sum(disk.size for disk in disks))
        names = ", ".join(disk_label(disk) for disk in disks)
        return self.plan_with_disks(
            facts,
            command_step(
                "add",
                f"Add {names} as a cache",
                ["zpool", "add", "--", self.pool, *aux_rules.aux_vdev_args((), self.disks, ())],
                touches=self.disks,
                run=retry.run_with_udev_retry,
            ),
            summary=f"{self.pool} keeps on {names} what falls out of memory, to read it from there the next time. Nothing of it is needed: the cache can fail or be taken out at any time.",
            warnings=self.plan_warnings(facts),
            undo="The cache can be taken out at any time; nothing is lost by it.",
            told={"It costs": told.costs, "It brings": told.brings},
        )

    def plan_warnings(self, facts: Facts) -> Iterator[str]:
        yield from aux_rules.cache_warnings(self.chosen_disks(facts))


class RemoveVdev(VdevChange, tag="remove-vdev"):
    """Take a spare, a log, a cache, or a whole group of data without raidz, out of a pool."""

    needs_proof = never

    @property
    def title(self) -> str:
        return f"Take a part out of {self.pool}"

    def check_place(self, facts: Facts, pool: Pool, place: vdev_tree.Place) -> Iterator[Reason]:
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
        elif place.role == "normal":
            yield from self.check_data(pool, place.vdev)

    def check_data(self, pool: Pool, group: Vdev) -> Iterator[Reason]:
        """zpool-remove(8): no raidz in the pool, one sector size, and room elsewhere for what is on it.

        Room that leaves ZFS's own reserve free twice (``vdev_removal.c``, ``spa_vdev_remove_top_check``).
        """
        groups = data_groups(pool)
        others = [one for one in groups if one.guid != group.guid]
        if any(one.kind in {"raidz", "draid"} for one in groups):
            yield Reason("pool-has-raidz", "ZFS cannot remove a group from a pool that has a raidz.", field="vdev")
        elif not others:
            yield Reason(
                "vdev-last", "This is the only group of the pool. To free its disks, destroy the pool.", field="vdev"
            )
        elif len({one.ashift for one in groups if one.ashift}) > 1:
            yield Reason(
                "sectors-differ",
                "The groups of this pool have different sector sizes, so ZFS can remove none of them.",
                field="vdev",
            )
        elif any(device.state != "ONLINE" for one in groups for device in one.devices()):
            yield Reason(
                "pool-incomplete",
                "A group can only be removed while every disk of the pool works. Replace the failed disk first.",
                field="vdev",
            )
        elif group.used + 2 * slop_bytes(sum(one.space for one in groups)) > sum(
            max(one.space - one.used, 0) for one in others
        ):
            yield Reason(
                "vdev-no-room",
                "The other groups have no room for the data of this group ({size}). Delete something first.",
                field="vdev",
                size=size_text(group.used),
            )
        elif pool.rebuilding:
            yield Reason(
                "pool-rebuilding",
                "{pool} is rebuilding. Wait until the rebuild has ended.",
                field="vdev",
                pool=pool.name,
            )

    def plan(self, facts: Facts) -> Plan:
        place = self.find_place(facts)
        group = place.vdev if place else Vdev("", "disk", self.vdev, "UNKNOWN")
        data = place is not None and place.role == "normal"
        name = vdev_tree.group_label(group) if group.children else vdev_tree.label(group, facts)
        return Plan(
            summary=f"ZFS moves what is on {name} ({size_text(group.used)}) to the other groups, then gives its disks free. Files stay available."
            if data
            else f"{name} is taken out of {self.pool}; its disks become free. Nothing of yours is on it that is not also elsewhere.",
            steps=(
                command_step(
                    "remove",
                    f"Take {name} out of {self.pool}",
                    ["zpool", "remove", "--", self.pool, str(self.vdev)],
                    timeout=600,
                ),
            ),
            identity=self.identity(facts),
            warnings=(
                (
                    f"The pool becomes smaller by {size_text(group.space)}. A table of where everything went stays in memory as long as the pool lives, about {size_text(max(group.used // 2000, 2**20))}.",
                )
                if data
                else ()
            ),
            undo="The disks can be added again afterwards.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        place = self.find_place(facts)
        return facts.pool(self.pool) is not None and (place is None or place.vdev.removing)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.probe(step, facts):
            return "It is being emptied, or gone already. Look at the pool's page."
        return f"It is still part of {self.pool}. Look at the pool's page, then start again."
