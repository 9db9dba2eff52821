"""A disk out of use and back again, and error counts set to nothing: offline, online, clear."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from appliance.errors import Failed, Reason
from appliance.facts.box import Facts, Pool, Vdev
from appliance.operation import Plan, Step, Work, command_step, never
from appliance.pools.vdevs.base import VdevChange, VdevOperation, missing_vdev, read_back
from appliance.zfs import status, vdev_tree
from appliance.zfs.vdev_tree import Place

WORKING = {"ONLINE", "DEGRADED"}
AWAY = {"FAULTED", "UNAVAIL", "REMOVED", "OFFLINE"}


class OfflineDisk(VdevChange, tag="offline-disk"):
    """Tell ZFS to use a disk no more, so that it can be pulled out without surprise. It stays so over a restart."""

    needs_proof = never

    @property
    def title(self) -> str:
        return f"Take a disk of {self.pool} offline"

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        if not place.leaf or place.parent is None:
            yield Reason(
                "disk-not-redundant",
                "The pool would stop without this disk, so it cannot be taken offline.",
                field="vdev",
            )
        elif place.vdev.state == "OFFLINE":
            yield Reason("disk-offline", "This disk is offline already.", field="vdev")
        elif not can_do_without(pool, place):
            yield Reason(
                "vdev-not-redundant",
                "No further disk of its group may fail at the moment, so taking this disk offline would stop the pool. First wait for the rebuild to end, or bring another disk back.",
                field="vdev",
            )

    def plan(self, facts: Facts) -> Plan:
        place = self.find_place(facts) or Place(Vdev("", "disk", self.vdev, "UNKNOWN"))
        pool = facts.pool(self.pool)
        name = vdev_tree.label(place.vdev, facts)
        left = failures_left(pool, place.group) - 1 if pool else 0
        return Plan(
            summary=f"ZFS stops using {name}. {self.pool} goes on with the others, and survives {left} more failed {'disk' if left == 1 else 'disks'} meanwhile."
            if left > 0
            else f"ZFS stops using {name}. {self.pool} goes on with the others, but no further disk of this group may fail meanwhile.",
            steps=(
                command_step(
                    "offline",
                    f"Take {name} offline",
                    ["zpool", "offline", "--", self.pool, str(self.vdev)],
                    undo="Bring it online again; only what changed meanwhile is copied.",
                ),
            ),
            identity=self.identity(facts),
            warnings=()
            if left > 0
            else ("Until the disk is back or replaced, one more failed disk of this group loses data.",),
            undo="It can be brought online again at any time; only what changed meanwhile is copied.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        place = self.find_place(facts)
        return place is not None and place.vdev.state == "OFFLINE"

    def recovery_hint(self, step: str, facts: Facts) -> str:
        place = self.find_place(facts)
        if place is not None and place.vdev.state in AWAY:
            return "ZFS does not use the disk any more. It can be pulled out."
        return "ZFS still uses the disk. Do not pull it out yet; start again."


def failures_left(pool: Pool, group: Vdev) -> int:
    """How many more members a group can do without; a member being rebuilt counts as not there."""
    return group.parity - sum(not pool.whole(child) for child in group.children)


def can_do_without(pool: Pool | None, place: Place) -> bool:
    """Whether the pool goes on without this disk."""
    parent = place.parent
    if pool is None or parent is None:
        return False
    if parent.kind in {"replacing", "spare"} and any(
        child.guid != place.vdev.guid and child.state == "ONLINE" and not pool.rebuilding for child in parent.children
    ):
        return True
    member = place.above[1] if len(place.above) > 1 else place.vdev
    return not pool.whole(member) or failures_left(pool, place.group) > 0


class OnlineDisk(VdevChange, tag="online-disk"):
    """Use a disk again that was offline, pulled out or gone; what changed meanwhile is copied onto it."""

    needs_proof = never

    @property
    def title(self) -> str:
        return f"Bring a disk of {self.pool} online"

    def disks_found(self, facts: Facts) -> tuple[str, ...]:
        # It may be erased at this moment, as a disk that was taken offline.
        place = self.find_place(facts)
        disk = vdev_tree.disk_of(place.vdev, facts) if place and place.leaf else None
        return (disk.path,) if disk and disk.path else ()

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        if not place.leaf:
            yield Reason("vdev-not-disk", "Choose a single disk.", field="vdev")
        elif place.vdev.state not in AWAY:
            yield Reason("disk-online", "ZFS uses this disk already.", field="vdev")
        elif is_surely_gone(place.vdev, facts):
            yield Reason(
                "disk-not-here",
                "{disk} is not in the box. Put it back into its bay, or replace it.",
                field="vdev",
                disk=vdev_tree.label(place.vdev, facts),
            )

    def plan(self, facts: Facts) -> Plan:
        place = self.find_place(facts) or Place(Vdev("", "disk", self.vdev, "UNKNOWN"))
        name = vdev_tree.label(place.vdev, facts)
        return Plan(
            summary=f"{self.pool} uses {name} again and copies onto it what changed meanwhile. Files stay available.",
            steps=(
                command_step(
                    "online",
                    f"Bring {name} online",
                    ["zpool", "online", "--", self.pool, vdev_tree.operand(place.vdev)],
                    undo="Take it offline again.",
                ),
                Step("verify", "See that ZFS uses it", shlex.join(status.READ_POOLS), self.verify_online),
            ),
            identity=self.identity(facts),
            warnings=("ZFS had stopped using this disk because of its errors. If they come back, replace it.",)
            if place.vdev.state == "FAULTED"
            else (),
            undo="It can be taken offline again.",
        )

    def verify_online(self, work: Work) -> None:
        place = vdev_tree.find(read_back(self.pool), self.vdev)
        if place is None or place.vdev.state not in WORKING:
            raise Failed(
                "The disk is there, but ZFS cannot use it",
                f"its state is {place.vdev.state}" if place else "it is no longer part of the pool",
            )
        work.note(f"{place.vdev.name} is {place.vdev.state.lower()}")

    def probe(self, step: str, facts: Facts) -> bool:
        place = self.find_place(facts)
        return place is not None and place.vdev.state in WORKING

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.probe(step, facts):
            return "ZFS uses the disk again."
        return "If the disk was wiped, or another one is in its bay, it cannot come back: replace it. Otherwise look at its cable and start again."


def is_surely_gone(device: Vdev, facts: Facts) -> bool:
    """Whether the disk is certainly not in the box. A pool made elsewhere may know it by a name that Larder does not use."""
    return (
        device.path.startswith("/dev/disk/by-id/")
        and not vdev_tree.link_of(device).startswith("wwn-")
        and vdev_tree.disk_of(device, facts) is None
    )


def is_expansion_waiting(pool: Pool) -> bool:
    """Whether a raidz stands still in its growing although every disk is back and rebuilt.

    A failed write stops the growing until ``zpool clear`` or the end of a rebuilding (``zpool status``: "paused for
    resilver or clear"). Seen with 2.3.9: a disk that was away for seconds is rebuilt before ZFS notices that it has stopped.
    """
    stands = any(work.kind == "expand" and work.state == "waiting" for work in pool.work)
    there = all(device.state == "ONLINE" for device in pool.devices() if device.role not in {"spare", "cache"})
    return stands and there and not pool.rebuilding


class ClearErrors(VdevOperation, tag="clear-errors"):
    """Set error counts to nothing, and let ZFS try again a disk, or a whole pool, that it had given up. ``vdev`` 0: all."""

    needs_proof = never

    vdev: int = 0

    @property
    def target_guid(self) -> int:
        return self.vdev

    @property
    def title(self) -> str:
        return f"Clear the errors of {self.pool}"

    def check(self, facts: Facts) -> Iterator[Reason]:
        pool = facts.pool(self.pool)
        if pool is None:
            yield Reason("pool-missing", "The pool {pool} is not in use here any more.", pool=self.pool)
            return
        if self.vdev and self.find_place(facts) is None:
            yield missing_vdev(self.pool)
            return
        if pool.state == "SUSPENDED":
            away = [device for device in pool.devices() if device.role != "spare" and is_surely_gone(device, facts)]
            short = [
                group
                for group in pool.vdevs
                if group.role not in {"spare", "cache"} and has_too_few_disks(group, facts)
            ]
            if short:
                missing = "; ".join(vdev_tree.label(device, facts) for device in away[:4])
                yield Reason(
                    "disks-not-here",
                    "Too many disks are still missing: {disks}. Put them back, then start {pool} again. Nothing is lost meanwhile: what was being written waits.",
                    field="vdev",
                    disks=missing,
                    pool=self.pool,
                )
        elif not self.is_called_for(pool):
            yield Reason("errors-none", "There are no errors to clear.", field="vdev")

    def is_called_for(self, pool: Pool) -> bool:
        """Whether there is something that clearing mends."""
        return pool.state == "SUSPENDED" or bool(self.devices_with_errors(pool)) or is_expansion_waiting(pool)

    def devices_with_errors(self, pool: Pool) -> list[Vdev]:
        place = vdev_tree.find(pool, self.vdev)
        chosen = place.vdev.devices() if place else (pool.devices() if not self.vdev else ())
        return [device for device in chosen if count_errors(device) or device.state in {"FAULTED", "DEGRADED"}]

    def plan(self, facts: Facts) -> Plan:
        pool = facts.pool(self.pool)
        stopped = pool is not None and pool.state == "SUSPENDED"
        argv = ["zpool", "clear", "--", self.pool, *([str(self.vdev)] if self.vdev else [])]
        step = "Let the pool go on"
        if stopped:
            summary = (
                f"{self.pool} starts again: ZFS opens its disks anew and goes on with what was waiting to be written."
            )
        elif pool is not None and is_expansion_waiting(pool):
            summary = f"{self.pool} goes on growing by its new disk, from where it stopped."
        else:
            summary = "The counts go back to nothing, so that new errors can be told from old ones. What they were stands below. No data is changed by it."
            step = "Clear the counts"
        return Plan(
            summary=summary,
            steps=(command_step("clear", step, argv, timeout=120),),
            identity=self.identity(facts),
            warnings=tuple(self.plan_warnings(pool, stopped)),
            undo="It cannot be undone, and harms nothing.",
            facts={
                vdev_tree.label(device, facts): explain_errors(device) for device in self.devices_with_errors(pool)[:12]
            }
            if pool
            else {},
        )

    def plan_warnings(self, pool: Pool | None, stopped: bool) -> Iterator[str]:  # a fact, not a switch
        if stopped:
            yield "If a disk is still missing, the pool stops again at once. Then look at cables and power first."
        if pool and any(device.state == "FAULTED" for device in self.devices_with_errors(pool)):
            yield "ZFS gave up a disk because of its errors. Clearing makes it try that disk again; a disk that really is broken will be given up again. Replace it then."
        if pool and pool.errors:
            yield f"{pool.errors} damaged places in files stay damaged. Clearing the counts mends nothing; restore those files from a snapshot or another copy."

    def probe(self, step: str, facts: Facts) -> bool:
        pool = facts.pool(self.pool)
        return pool is not None and not self.is_called_for(pool)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        pool = facts.pool(self.pool)
        if pool and pool.state == "SUSPENDED":
            return f"{self.pool} still stands. Check that every disk is in its bay, with power and cable, and try again; if it does not come back, restart the box."
        return f"{self.pool} works. Look at its page: if new errors are counted, they are new."


def has_too_few_disks(group: Vdev, facts: Facts) -> bool:
    """Whether too many of a group's disks are not in the box for it to work."""
    if not group.children:
        return is_surely_gone(group, facts)
    gone = sum(all(is_surely_gone(device, facts) for device in child.devices()) for child in group.children)
    return gone > group.parity


def count_errors(device: Vdev) -> int:
    return device.read_errors + device.write_errors + device.checksum_errors


def explain_errors(device: Vdev) -> str:
    """What the counts of a disk say, in words."""
    said = []
    if device.read_errors:
        said.append(f"{device.read_errors} times it did not give back what was asked (read)")
    if device.write_errors:
        said.append(f"{device.write_errors} times it did not take what was written (write)")
    if device.checksum_errors:
        said.append(f"{device.checksum_errors} times it gave back something other than was written (checksum)")
    if not said:
        return "given up by ZFS" if device.state == "FAULTED" else "weakened"
    why = (
        "Reading and writing errors come from the disk, its cable or its power."
        if device.read_errors or device.write_errors
        else "A few after a pulled cable or a power cut are harmless; more of them on one disk mean the disk or its cable, on several disks the memory or the controller."
    )
    return f"{'; '.join(said)}. {why}"
