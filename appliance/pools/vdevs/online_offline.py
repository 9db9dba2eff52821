"""Take a disk of a pool offline, and bring it online again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from appliance.errors import Failed, Reason
from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool, Vdev
from appliance.message import Message
from appliance.operation import Plan, Step, Work, command_step, never
from appliance.pools.vdevs.base import VdevChange, read_back
from appliance.system.disk_links import BY_ID
from appliance.zfs import status, vdev_tree
from appliance.zfs.vdev_tree import Place


class OfflineDisk(VdevChange, tag="offline-disk"):
    """Let ZFS stop using a disk, so that it can be pulled out safely. It stays offline after a restart."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Take a disk of {pool} offline", pool=self.pool)

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
                "No further disk of its group may fail at the moment, so taking this disk offline would stop "
                "the pool. First wait for the rebuild to end, or bring another disk back.",
                field="vdev",
            )

    def plan(self, facts: Facts) -> Plan:
        place = self.find_disk_place(facts)
        pool = facts.pool(self.pool)
        name = vdev_tree.vdev_label(place.vdev, facts)
        left = failures_left(pool, place.group) - 1 if pool else 0
        return Plan(
            summary=Message(
                "ZFS stops using {name}. {pool} goes on with the others, and survives {left} more failed "
                "{what} meanwhile.",
                name=name,
                pool=self.pool,
                left=left,
                what=Message("disk") if left == 1 else Message("disks"),
            )
            if left > 0
            else Message(
                "ZFS stops using {name}. {pool} goes on with the others, but no further disk of this group "
                "may fail meanwhile.",
                name=name,
                pool=self.pool,
            ),
            steps=(
                command_step(
                    "offline",
                    Message("Take {name} offline", name=name),
                    ["zpool", "offline", "--", self.pool, str(self.vdev)],
                    undo=Message("Bring it online again; only what changed meanwhile is copied."),
                ),
            ),
            identity=self.identity(facts),
            warnings=()
            if left > 0
            else (Message("Until the disk is back or replaced, one more failed disk of this group loses data."),),
            undo=Message("It can be brought online again at any time; only what changed meanwhile is copied."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        place = self.find_place(facts)
        return place is not None and place.vdev.state == "OFFLINE"

    def recovery_hint(self, step: str, facts: Facts) -> str:
        place = self.find_place(facts)
        if place is not None and place.vdev.state in vdev_state.LOST:
            return Message("ZFS does not use the disk any more. It can be pulled out.")
        return Message("ZFS still uses the disk. Do not pull it out yet; start again.")


def failures_left(pool: Pool, group: Vdev) -> int:
    """How many more members of a group may fail; a member being rebuilt counts as failed."""
    return group.parity - sum(not pool.whole(child) for child in group.children)


def can_do_without(pool: Pool | None, place: Place) -> bool:
    """Whether the pool keeps running without this disk."""
    parent = place.parent
    if pool is None or parent is None:
        return False
    if parent.kind in {"replacing", "spare"} and any(
        child.guid != place.vdev.guid and child.state == "ONLINE" and not pool.rebuilding and not child.deferred
        for child in parent.children
    ):
        return True
    member = place.above[1] if len(place.above) > 1 else place.vdev
    return not pool.whole(member) or failures_left(pool, place.group) > 0


class OnlineDisk(VdevChange, tag="online-disk"):
    """Use a disk again that was offline, pulled out or missing; ZFS copies what changed meanwhile."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Bring a disk of {pool} online", pool=self.pool)

    def disks_found(self, facts: Facts) -> tuple[str, ...]:
        # Locked, because a disk that is offline can also be erased.
        place = self.find_place(facts)
        disk = vdev_tree.disk_of(place.vdev, facts) if place and place.leaf else None
        return (disk.path,) if disk and disk.path else ()

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        if not place.leaf:
            yield Reason("vdev-not-disk", "Choose a single disk.", field="vdev")
        elif place.vdev.state not in vdev_state.LOST:
            yield Reason("disk-online", "ZFS uses this disk already.", field="vdev")
        elif is_surely_gone(place.vdev, facts):
            yield Reason(
                "disk-not-here",
                "{disk} is not in the box. Put it back into its bay, or replace it.",
                field="vdev",
                disk=vdev_tree.vdev_label(place.vdev, facts),
            )

    def plan(self, facts: Facts) -> Plan:
        place = self.find_disk_place(facts)
        name = vdev_tree.vdev_label(place.vdev, facts)
        return Plan(
            summary=Message(
                "{pool} uses {name} again and copies onto it what changed meanwhile. Files stay available.",
                pool=self.pool,
                name=name,
            ),
            steps=(
                command_step(
                    "online",
                    Message("Bring {name} online", name=name),
                    ["zpool", "online", "--", self.pool, vdev_tree.online_operand(place.vdev)],
                    undo=Message("Take it offline again."),
                ),
                Step("verify", Message("Check that ZFS uses it"), shlex.join(status.READ_POOLS), self.verify_online),
            ),
            identity=self.identity(facts),
            warnings=(Message("ZFS had stopped using this disk because of its errors. If they come back, replace it."),)
            if place.vdev.state == "FAULTED"
            else (),
            undo=Message("It can be taken offline again."),
        )

    def verify_online(self, work: Work) -> None:
        place = vdev_tree.find_vdev(read_back(self.pool), self.vdev)
        if place is None or place.vdev.state not in vdev_state.WORKING:
            raise Failed(
                Message("The disk is there, but ZFS cannot use it"),
                Message("its state is {state}", state=place.vdev.state)
                if place
                else Message("it is no longer part of the pool"),
            )
        work.note(Message("{vdev} is {state}", vdev=place.vdev.name, state=place.vdev.state.lower()))

    def probe(self, step: str, facts: Facts) -> bool:
        place = self.find_place(facts)
        return place is not None and place.vdev.state in vdev_state.WORKING

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.probe(step, facts):
            return Message("ZFS uses the disk again.")
        return Message(
            "If the disk was erased, or another one is in its bay, it cannot come back: replace it. "
            "Otherwise check its cable and start again."
        )


def is_surely_gone(device: Vdev, facts: Facts) -> bool:
    """Whether the disk is certainly not in the box. A pool from elsewhere may know it by a name that Larder does not
    use, and then store nothing else that identifies it."""
    return (
        (device.disk or device.path).startswith(f"{BY_ID}/")
        and not vdev_tree.link_of(device).startswith("wwn-")
        and vdev_tree.disk_of(device, facts) is None
    )
