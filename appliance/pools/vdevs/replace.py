"""Replace a disk, attach a copy to a disk or mirror, detach a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from appliance.errors import Reason
from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool, Vdev
from appliance.formatting import disk_label
from appliance.message import Message
from appliance.operation import Plan, command_step, if_lost, never
from appliance.pools.vdevs import retry
from appliance.pools.vdevs.base import (
    VdevChange,
    ashift_option,
    check_no_checkpoint,
    check_no_sequential_rebuild,
    check_not_removing,
    sector_warning,
)
from appliance.pools.vdevs.online_offline import can_do_without
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place

REPLACEABLE = {"normal", "log", "special", "dedup"}


class ReplaceDisk(VdevChange, tag="replace-disk"):
    """Put a disk in the place of another. The old one is named by its guid, because it may be gone."""

    needs_proof = if_lost

    disk: str

    @property
    def new_disks(self) -> tuple[str, ...]:
        return (self.disk,)

    @property
    def title(self) -> str:
        return Message("Replace a disk of {pool}", pool=self.pool)

    def find_new_disk(self, pool: Pool | None, path: str) -> Place | None:
        """A disk that goes back erased into its own place is new only once ZFS gave it another guid."""
        place = vdev_tree.find_disk(pool, path)
        return place if place and place.vdev.guid != self.vdev else None

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        yield from check_no_checkpoint(pool)
        yield from check_not_removing(pool)
        yield from check_no_sequential_rebuild(pool)
        if not place.leaf:
            yield Reason("vdev-not-disk", "Choose a single disk.", field="vdev")
        elif place.role not in REPLACEABLE:
            yield Reason(
                "role-not-replaceable",
                "A {role} disk cannot be replaced. Remove it and add another.",
                field="vdev",
                role=place.role,
            )
        elif place.parent and place.parent.kind == "spare" and place.parent.children[0].guid != self.vdev:
            yield Reason(
                "spare-not-replaceable",
                "This is the spare that stands in. Replace the disk it stands in for.",
                field="vdev",
            )
        yield from self.check_new_disks(facts)
        yield from self.check_fit(facts, place)

    def plan(self, facts: Facts) -> Plan:
        place = self.find_disk_place(facts)
        new = facts.disk(self.disk)
        old, into = vdev_tree.vdev_label(place.vdev, facts), disk_label(new) if new else self.disk
        same = vdev_tree.link_of(place.vdev) == Path(self.disk).name  # the same disk, erased while it was offline
        change = command_step(
            "replace",
            Message("Put {into} in the place of {old}", into=into, old=old),
            ["zpool", "replace", *ashift_option(place.group.ashift), "--", self.pool, str(self.vdev), self.disk],
            affects=[self.disk],
            runner=retry.run_with_udev_retry,
            undo=Message("Take the new disk out again while it is being rebuilt; the old one stays."),
        )
        return self.plan_with_disks(
            facts,
            change,
            summary=Message(
                "{what}. ZFS then copies its share of the data onto it. Files stay available meanwhile.",
                what=Message(
                    "{into} goes back into its own place in {pool}, as if it were new", into=into, pool=self.pool
                )
                if same
                else Message("{into} takes the place of {old} in {pool}", into=into, old=old, pool=self.pool),
            ),
            warnings=self.plan_warnings(facts, place),
            undo=Message("Until the rebuild has ended, the new disk can be removed again."),
            details={Message("Old disk"): old, Message("New disk"): into},
        )

    def plan_warnings(self, facts: Facts, place: Place) -> Iterator[str]:
        yield from sector_warning(self.chosen_disks(facts), place.group.ashift)
        pool = facts.pool(self.pool)
        if pool and pool.rebuilding:
            yield Message(
                "{pool} is rebuilding already. This disk is rebuilt together with the other one, or after it.",
                pool=self.pool,
            )
        old, new = vdev_tree.disk_of(place.vdev, facts), facts.disk(self.disk)
        if old and new and old.rotational != new.rotational:
            yield Message(
                "One of the two disks is a hard disk and the other a solid-state disk. That works, at the "
                "speed of the slower one."
            )
        if place.parent and place.parent.kind == "spare":
            yield Message(
                "A hot spare stands in for this disk. When the new disk is rebuilt, the spare becomes free "
                "again automatically."
            )


class AttachDisk(VdevChange, tag="attach-disk"):
    """Add a copy: make a single disk a mirror, or a mirror wider. ``vdev`` is a disk of it or the mirror itself."""

    needs_proof = if_lost

    disk: str

    @property
    def new_disks(self) -> tuple[str, ...]:
        return (self.disk,)

    @property
    def title(self) -> str:
        return Message("Add a copy to {pool}", pool=self.pool)

    def source_place(self, facts: Facts) -> Place | None:
        """The disk that the new one becomes a copy of; for a mirror the first of its disks that works."""
        place = self.find_place(facts)
        if place is None or place.leaf:
            return place
        return next(
            (
                Place(child, (place.vdev,))
                for child in place.vdev.children
                if child.state == "ONLINE" and not child.children
            ),
            None,
        )

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        yield from check_no_checkpoint(pool)
        yield from check_not_removing(pool)
        yield from check_no_sequential_rebuild(pool)
        source = self.source_place(facts)
        if source is None:
            yield Reason(
                "mirror-not-working",
                "None of the disks of this mirror works, so there is nothing to copy from.",
                field="vdev",
            )
            return
        if source.role not in REPLACEABLE:
            yield Reason("role-not-mirrored", "A {role} disk needs no copy.", field="vdev", role=source.role)
        elif source.group.kind not in {"disk", "file", "mirror"} or len(source.above) > 1:
            yield Reason(
                "vdev-not-mirrored",
                "Only a single disk or a mirror can have one more copy. Expand a raidz instead.",
                field="vdev",
            )
        elif source.vdev.state != "ONLINE":
            yield Reason("disk-not-working", "This disk does not work, so there is nothing to copy from.", field="vdev")
        yield from self.check_new_disks(facts)
        yield from self.check_fit(facts, source)

    def plan(self, facts: Facts) -> Plan:
        place = self.source_place(facts) or Place(Vdev("", "disk", self.vdev, "UNKNOWN"))
        new = facts.disk(self.disk)
        into = disk_label(new) if new else self.disk
        copies = max(len(place.group.children), 1) + 1
        change = command_step(
            "attach",
            Message(
                "Make {into} a copy of {vdev_label}", into=into, vdev_label=vdev_tree.vdev_label(place.vdev, facts)
            ),
            ["zpool", "attach", *ashift_option(place.group.ashift), "--", self.pool, str(place.vdev.guid), self.disk],
            affects=[self.disk],
            runner=retry.run_with_udev_retry,
            undo=Message("Take the copy out again."),
        )
        return self.plan_with_disks(
            facts,
            change,
            summary=Message(
                "{into} becomes one of {copies} copies. Once the data is copied, this part of {pool} "
                "survives {copies_2} failed {what}. The pool gets no more space.",
                into=into,
                copies=copies,
                pool=self.pool,
                copies_2=copies - 1,
                what=Message("disk") if copies == 2 else Message("disks"),
            ),
            warnings=sector_warning(self.chosen_disks(facts), place.group.ashift),
            undo=Message("The copy can be removed again at any time."),
        )


class DetachDisk(VdevChange, tag="detach-disk"):
    """Remove one copy: of a mirror, of a running replacement, or a spare that stands in."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Take a disk out of {pool}", pool=self.pool)

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        if place.role == "spare" and place.vdev.state == "AVAIL":
            yield Reason("spare-waiting", "This spare is waiting again already.", field="vdev")
            return
        yield from check_no_checkpoint(pool)
        if not place.leaf or place.parent is None or place.parent.kind not in {"mirror", "replacing", "spare"}:
            yield Reason(
                "disk-not-copy",
                "Only a copy can be removed: a disk of a mirror, or a spare that stands in. Replace this disk instead.",
                field="vdev",
            )
            return
        others = [child for child in place.parent.children if child.guid != self.vdev]
        if not any(self.is_good_copy(child) for child in others) and not (
            len(place.above) > 1 and can_do_without(pool, place)
        ):
            # The only working disk of a replacement may go as well if its group is complete
            # without it (vdev_dtl_required).
            yield Reason("copy-last", "This is the last good copy. Removing it would lose the data.", field="vdev")
        lagging = [child for child in others if any(map(pool.lags, (child, *child.devices())))]
        if (
            place.vdev.state == "ONLINE"
            and lagging
            and not any(child.state == "ONLINE" and child not in lagging for child in others)
        ):
            yield Reason(
                "copy-needed",
                "The other disks are still being rebuilt from this one. Wait until the rebuild has ended.",
                field="vdev",
            )

    @staticmethod
    def is_good_copy(child: Vdev) -> bool:
        """Whether a copy, a disk or a replacement, can be read."""
        return any(device.state in vdev_state.WORKING for device in child.devices())

    def plan(self, facts: Facts) -> Plan:
        place = self.find_disk_place(facts)
        name = vdev_tree.vdev_label(place.vdev, facts)
        return Plan(
            summary=self.describe_effect(place, name),
            steps=(
                command_step(
                    "detach",
                    Message("Take {name} out of {pool}", name=name, pool=self.pool),
                    ["zpool", "detach", "--", self.pool, str(self.vdev)],
                    undo=Message("Add it as a copy again; all data is then copied again."),
                ),
            ),
            identity=self.identity(facts),
            warnings=tuple(self.plan_warnings(facts, place)),
            undo=Message(
                "It can be added again, and all data is then copied again. Its data cannot be read without the pool."
            ),
        )

    def describe_effect(self, place: Place, name: str) -> str:
        """What removing the disk does to the pool."""
        parent = place.parent
        if parent and parent.kind == "spare":
            if parent.children[0].guid == self.vdev:
                return Message(
                    "{name} leaves {pool}, and the spare that stands in for it takes its place for good. Add "
                    "another spare when you can.",
                    name=name,
                    pool=self.pool,
                )
            if parent.children[0].state in vdev_state.LOST:
                return Message("The spare {name} becomes free again.", name=name)
            return Message(
                "The spare {name} becomes free again; the disk it stood in for works alone again.", name=name
            )
        if parent and parent.kind == "replacing":
            return Message(
                "{name} leaves {pool}, and the replacement ends with the other disk in its place.",
                name=name,
                pool=self.pool,
            )
        return Message("{name} is no longer a copy and becomes free.", name=name)

    def plan_warnings(self, facts: Facts, place: Place) -> Iterator[str]:
        parent, pool = place.parent, facts.pool(self.pool)
        if parent and parent.kind == "mirror":
            left = sum(
                self.is_good_copy(child) and not (pool and pool.lags(child))
                for child in parent.children
                if child.guid != self.vdev
            )
            if left == 1:
                yield Message("Only one copy is left then: a failed disk loses everything in this pool.")
        if parent and parent.kind == "spare" and parent.children[0].guid != self.vdev:
            yield from self.warn_of_original(parent.children[0])

    def warn_of_original(self, original: Vdev) -> Iterator[str]:
        """Why a spare should stay: the disk that it stands in for is not well."""
        if original.state != "ONLINE":
            what = vdev_state.describe(original.state).phrase
        elif original.read_errors or original.write_errors or original.checksum_errors:
            what = Message("has errors")
        else:
            return
        yield Message(
            "The disk that this spare stands in for {phrase}. Without the spare, {pool} has less protection: "
            "replace that disk instead.",
            phrase=what,
            pool=self.pool,
        )

    def probe(self, step: str, facts: Facts) -> bool:
        pool = facts.pool(self.pool)
        place = vdev_tree.find_vdev(pool, self.vdev)
        return pool is not None and (place is None or (place.role == "spare" and place.vdev.state == "AVAIL"))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.probe(step, facts):
            return Message("The disk is out of {pool}.", pool=self.pool)
        return Message("The disk is still part of {pool}. Look at the pool's page, then start again.", pool=self.pool)
