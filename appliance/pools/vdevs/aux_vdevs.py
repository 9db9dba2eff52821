"""Add spare, log and cache vdevs to a pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from appliance.errors import Reason
from appliance.facts.box import Caching, Facts, Pool, Vdev
from appliance.formatting import disk_label, size_text
from appliance.layout.aux_devices import LOG_EVER_USED, cache_advice, log_advice
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, command_step, if_lost
from appliance.pools.vdevs import aux_rules, retry
from appliance.pools.vdevs.base import VdevOperation, ashift_option, check_sector_size, sector_warning
from appliance.pools.vdevs.groups import data_groups, usual_ashift
from appliance.zfs import vdev_tree


class AddAuxVdev(VdevOperation):
    """Base of the three. Their disks hold no data of their own and can be removed again at any time."""

    disks: tuple[str, ...]

    @property
    def new_disks(self) -> tuple[str, ...]:
        return self.disks

    def check_change(self, facts: Facts, pool: Pool) -> Iterator[Reason]:
        yield from self.check_new_disks(facts)
        for disk in self.chosen_disks(facts):
            yield from check_sector_size(disk, usual_ashift(pool))

    def disk_names(self, facts: Facts) -> str:
        return join_messages([disk_label(disk) for disk in self.chosen_disks(facts)], ", ")

    def add_step(self, title: str, vdev_args: Sequence[str], options: Sequence[str] = ()) -> Step:
        """The step that runs ``zpool add``."""
        argv = ["zpool", "add", *options, "--", self.pool, *vdev_args]
        return command_step("add", title, argv, affects=self.disks, runner=retry.run_with_udev_retry)


class AddSpare(AddAuxVdev, tag="add-spare"):
    """Hot spares, which stand in automatically when another disk fails."""

    needs_proof = if_lost

    @property
    def title(self) -> str:
        return Message("Add a spare to {pool}", pool=self.pool)

    def plan(self, facts: Facts) -> Plan:
        names, ashift = self.disk_names(facts), usual_ashift(facts.pool(self.pool))
        return self.plan_with_disks(
            facts,
            self.add_step(
                Message("Add {names} as a spare", names=names),
                aux_rules.aux_vdev_args((), (), self.disks),
                ashift_option(ashift),
            ),
            summary=Message(
                "{names} stays switched on but unused, and stands in automatically when a disk of {pool} "
                "fails. It adds no space.",
                names=names,
                pool=self.pool,
            ),
            warnings=self.plan_warnings(facts),
            undo=Message("A spare that is not in use can be removed at any time."),
        )

    def plan_warnings(self, facts: Facts) -> Iterator[str]:
        pool = facts.pool(self.pool)
        groups = data_groups(pool) if pool else []
        for disk in self.chosen_disks(facts):
            short = [place for group in groups for place in group_places(group) if vdev_tree.missing_bytes(disk, place)]
            if short:
                yield Message(
                    "{disk} is too small to stand in for {count} of the disks of {pool}.",
                    disk=disk_label(disk),
                    count=len(short),
                    pool=self.pool,
                )
        if pool and pool.failures_left == 0 and all(not group.children for group in groups):
            yield Message(
                "{pool} has no copies, so a spare would have nothing to rebuild from. Add a copy instead.",
                pool=self.pool,
            )


def group_places(group: Vdev) -> Iterator[vdev_tree.Place]:
    """The places of a group that a spare can stand in for."""
    if not group.children:
        yield vdev_tree.Place(group)
    for child in group.children:
        yield vdev_tree.Place(child, (group,))


class AddLog(AddAuxVdev, tag="add-log"):
    """A log device (SLOG) for synchronous writes; several disks become a mirror."""

    needs_proof = if_lost

    @property
    def title(self) -> str:
        return Message("Add a log to {pool}", pool=self.pool)

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
        advice = log_advice(Caching())
        return self.plan_with_disks(
            facts,
            self.add_step(
                Message("Add the log{what}", what=Message(", mirrored") if len(self.disks) > 1 else ""),
                aux_rules.aux_vdev_args(self.disks, (), ()),
                ashift_option(ashift),
            ),
            summary=Message(
                "{pool} first writes to the log what a client needs to be safe at once (NFS, databases, "
                "virtual machines). Windows and Mac shares and plain copying hardly use it.",
                pool=self.pool,
            ),
            warnings=self.plan_warnings(facts, ashift),
            undo=Message("The log can be removed at any time without loss."),
            details={Message("Cost"): advice.costs, Message("Benefit"): advice.brings},
        )

    def plan_warnings(self, facts: Facts, ashift: int) -> Iterator[str]:
        disks = self.chosen_disks(facts)
        yield from aux_rules.log_warnings(disks)
        if any(disk.size > 8 * LOG_EVER_USED for disk in disks):
            yield Message(
                "A log never uses more than about {log_ever_used}; the rest of the disk stays unused.",
                log_ever_used=size_text(LOG_EVER_USED),
            )
        yield from sector_warning(disks, ashift)


class AddCache(AddAuxVdev, tag="add-cache"):
    """A cache device (L2ARC) for data that is read again and again and does not fit into memory."""

    needs_proof = if_lost

    @property
    def title(self) -> str:
        return Message("Add a cache to {pool}", pool=self.pool)

    def plan(self, facts: Facts) -> Plan:
        disks, names = self.chosen_disks(facts), self.disk_names(facts)
        advice = cache_advice(Caching(), sum(disk.size for disk in disks))
        return self.plan_with_disks(
            facts,
            self.add_step(Message("Add {names} as a cache", names=names), aux_rules.aux_vdev_args((), self.disks, ())),
            summary=Message(
                "{pool} keeps on {names} what no longer fits into memory, and reads it from there the next "
                "time. These are second copies only: the cache can fail or be removed at any time.",
                pool=self.pool,
                names=names,
            ),
            warnings=aux_rules.cache_warnings(disks),
            undo=Message("The cache can be removed at any time without loss."),
            details={Message("Cost"): advice.costs, Message("Benefit"): advice.brings},
        )
