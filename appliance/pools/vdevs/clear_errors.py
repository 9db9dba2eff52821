"""Clear the error counts of a disk or pool, and let ZFS try again what it gave up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from appliance import command
from appliance.errors import LarderError, Reason, Refused, explain_error
from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool, Vdev
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.pool_reasons import missing_pool
from appliance.formatting import names_text
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, command_step, never
from appliance.pools.vdevs.base import VdevOperation, missing_vdev
from appliance.pools.vdevs.online_offline import is_surely_gone
from appliance.shares import teardown
from appliance.zfs import receives, status, vdev_tree


def is_expansion_waiting(pool: Pool) -> bool:
    """Whether a raidz expansion is paused although every disk is back and rebuilt.

    A failed write pauses the expansion until ``zpool clear`` or the end of a resilver (``zpool status``: "paused for
    resilver or clear"). Seen with 2.3.9: a disk that was missing for seconds is rebuilt before ZFS notices the pause.
    """
    is_paused = any(work.kind == "expand" and work.state == "waiting" for work in pool.work)
    is_complete = all(device.state == "ONLINE" for device in pool.devices() if device.role not in {"spare", "cache"})
    return is_paused and is_complete and not pool.rebuilding


class ClearErrors(VdevOperation, tag="clear-errors"):
    """Clear error counts, and let ZFS try a failed disk or a suspended pool again. ``vdev`` 0: the whole pool."""

    needs_proof = never

    vdev: int = 0

    @property
    def target_guid(self) -> int:
        return self.vdev

    @property
    def title(self) -> str:
        return Message("Clear the errors of {pool}", pool=self.pool)

    def check(self, facts: Facts) -> Iterator[Reason]:
        pool = facts.pool(self.pool)
        if pool is None:
            yield missing_pool(self.pool)
            return
        if self.vdev and self.find_place(facts) is None:
            yield missing_vdev(self.pool)
            return
        if pool.state == "SUSPENDED" and holds_raw_copies(pool, facts):
            yield Reason(
                "pool-needs-restart",
                "{pool} has copies that are received encrypted. If a backup to such a pool was cut off, "
                "starting the pool again stops the whole box (a bug in ZFS). Put its disk back and restart "
                "the box instead. What has arrived stays, and the next run continues from there.",
                field="vdev",
                pool=self.pool,
            )
        elif pool.state == "SUSPENDED":
            away = [device for device in pool.devices() if device.role != "spare" and is_surely_gone(device, facts)]
            short = [
                group
                for group in pool.vdevs
                if group.role not in {"spare", "cache"} and has_too_few_disks(group, facts)
            ]
            if short:
                missing = names_text([vdev_tree.vdev_label(device, facts) for device in away], 4, "; ")
                yield Reason(
                    "disks-not-here",
                    "Too many disks are still missing: {disks}. Put them back, then start {pool} again. "
                    "Nothing is lost meanwhile: what was being written waits.",
                    field="vdev",
                    disks=missing,
                    pool=self.pool,
                )
        elif not self.is_called_for(pool):
            yield Reason("errors-none", "There are no errors to clear.", field="vdev")

    def is_called_for(self, pool: Pool) -> bool:
        """Whether there is anything to clear."""
        return pool.state == "SUSPENDED" or bool(self.devices_with_errors(pool)) or is_expansion_waiting(pool)

    def devices_with_errors(self, pool: Pool) -> list[Vdev]:
        place = vdev_tree.find_vdev(pool, self.vdev)
        chosen = place.vdev.devices() if place else (pool.devices() if not self.vdev else ())
        return [device for device in chosen if count_errors(device) or device.state in vdev_state.DIAGNOSED]

    def plan(self, facts: Facts) -> Plan:
        pool = facts.pool(self.pool)
        stopped = pool is not None and pool.state == "SUSPENDED"
        argv = ["zpool", "clear", "--", self.pool, *([str(self.vdev)] if self.vdev else [])]
        step = Message("Let the pool continue")
        if stopped:
            summary = Message(
                "{pool} starts again: ZFS opens its disks again and continues with the writes that were waiting.",
                pool=self.pool,
            )
        elif pool is not None and is_expansion_waiting(pool):
            summary = Message("{pool} continues to expand onto its new disk, from where it stopped.", pool=self.pool)
        else:
            summary = Message(
                "The counts are set to zero, so that new errors stand out. The counts until now are shown "
                "below. No data is changed."
            )
            step = Message("Clear the counts")
        return Plan(
            summary=summary,
            steps=(
                command_step("clear", step, argv, timeout=120, runner=start_again(self.pool) if stopped else None),
                *([serve_step()] if stopped else []),
            ),
            identity=self.identity(facts),
            warnings=tuple(self.plan_warnings(pool, stopped)),
            undo=Message("It cannot be undone, but does no harm."),
            details={
                vdev_tree.vdev_label(device, facts): explain_errors(device)
                for device in self.devices_with_errors(pool)[:12]
            }
            if pool
            else {},
        )

    def plan_warnings(self, pool: Pool | None, stopped: bool) -> Iterator[str]:
        if stopped:
            yield Message(
                "If a disk is still missing, the pool stops again at once. In that case check cables and power first."
            )
        if pool and any(device.state == "FAULTED" for device in self.devices_with_errors(pool)):
            yield Message(
                "ZFS stopped using a disk because of its errors. Clearing makes ZFS try it again. If the "
                "disk fails again, replace it."
            )
        if pool and pool.errors:
            yield Message(
                "{errors} damaged places in files stay damaged. Clearing the counts repairs nothing; restore "
                "those files from a snapshot or another copy.",
                errors=pool.errors,
            )

    def probe(self, step: str, facts: Facts) -> bool:
        pool = facts.pool(self.pool)
        return step == "clear" and pool is not None and not self.is_called_for(pool)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        pool = facts.pool(self.pool)
        if pool and pool.state == "SUSPENDED":
            return Message(
                "{pool} is still stopped. Check that every disk is in its bay, with power and cable, and try "
                "again. If that does not help, restart the box.",
                pool=self.pool,
            )
        return Message("{pool} works. Errors that its page shows from now on are new.", pool=self.pool)


def serve_step() -> Step:
    """Whatever was shared anew while the pool was stopped left out its shares, as its folders were not listed."""

    def act(work: Work) -> None:
        try:
            teardown.serve_datasets(status.read_datasets(), work.note)
        except LarderError as error:  # the pool works, whatever speaks against a share
            work.note(Message("Its shares were left as they are: {why}", why=explain_error(error)))

    return Step("serve", Message("Serve its shares again"), "\n".join(teardown.publish_commands()), act)


def start_again(pool: str) -> Callable[..., command.Result]:
    """Run ``zpool clear`` on a stopped pool, unless a receive was cut off in it. Raises Refused.

    ``zfs list`` leaves out the datasets of a stopped pool (2.3.9), so that whether they are copies is known to those
    alone who have read them before; the process that receives is known here too.
    """

    def run(argv: tuple[str, ...], **options: Any) -> command.Result:
        if cut_off := receives.find_receives(pool):
            raise Refused(
                Reason(
                    "pool-receive-waits",
                    "A backup to {copies} was cut off. If it is encrypted, starting {pool} again stops the "
                    "whole box (a bug in ZFS). Put its disk back and restart the box instead. What has "
                    "arrived stays, and the next run continues from there.",
                    field="vdev",
                    copies=names_text(cut_off, 3),
                    pool=pool,
                )
            )
        return command.run(argv, **options)

    return run


def holds_raw_copies(pool: Pool, facts: Facts) -> bool:
    """Whether a receive of encrypted blocks may hang in the pool. With 2.3.9 ``zpool clear`` after a disk was
    pulled in the middle of one ends in a panic of the kernel (zio_encrypt); whether one was under way, a
    stopped pool does not tell."""
    marks = (parse_copy_mark(one.copy_of) for one in facts.datasets if one.pool == pool.name)
    return any(mark is not None and mark.guid and mark.raw for mark in marks)


def has_too_few_disks(group: Vdev, facts: Facts) -> bool:
    """Whether a group cannot run because too many of its disks are not in the box."""
    if not group.children:
        return is_surely_gone(group, facts)
    gone = sum(all(is_surely_gone(device, facts) for device in child.devices()) for child in group.children)
    return gone > group.parity


def count_errors(device: Vdev) -> int:
    """All errors that ZFS counted for a device."""
    return device.read_errors + device.write_errors + device.checksum_errors


def explain_errors(device: Vdev) -> str:
    """The error counts of a disk in words, and where such errors come from."""
    kinds = (
        (
            device.read_errors,
            Message("read error"),
            Message("read errors"),
            Message("it did not return data that was asked for"),
        ),
        (
            device.write_errors,
            Message("write error"),
            Message("write errors"),
            Message("it did not store data that was written"),
        ),
        (
            device.checksum_errors,
            Message("checksum error"),
            Message("checksum errors"),
            Message("it returned other data than was written"),
        ),
    )
    counts = [
        Message("{count} {errors}: {meaning}", count=count, errors=one if count == 1 else several, meaning=meaning)
        for count, one, several, meaning in kinds
        if count
    ]
    if not counts:
        return Message("no longer used by ZFS") if device.state == "FAULTED" else Message("degraded")
    why = (
        Message("Read and write errors come from the disk, its cable or its power supply.")
        if device.read_errors or device.write_errors
        else Message(
            "A few after a pulled cable or a power cut are harmless. Many on one disk point to the disk or "
            "its cable, on several disks to the memory or the controller."
        )
    )
    return Message("{counts}. {why}", counts=join_messages(counts, "; "), why=why)
