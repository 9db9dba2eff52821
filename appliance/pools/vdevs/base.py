"""Base classes for changing the vdevs of a pool: shared checks, the digest, and the disks that are taken."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

import msgspec

from appliance import names
from appliance.disks.clear_labels import erase_step, lost_use
from appliance.errors import Failed, Reason, Refused
from appliance.facts import vdev_state
from appliance.facts.box import Disk, Facts, Pool, Vdev
from appliance.facts.pool_reasons import missing_pool, stopped_pool
from appliance.formatting import disk_label, size_text
from appliance.message import Message
from appliance.operation import Loss, Operation, Plan, Step, Work
from appliance.zfs import status, vdev_tree
from appliance.zfs.vdev_tree import Place

LARGEST_GUID = 2**64


class VdevOperation(Operation):
    """A change of one pool's vdevs. Subclasses name the new disks by their by-id paths, and check them."""

    pool: str

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)
        if not 0 <= self.target_guid < LARGEST_GUID:
            raise Refused(
                Reason(
                    "vdev-number",
                    "{number} is not the number of a part of a pool.",
                    field="vdev",
                    number=self.target_guid,
                )
            )
        for path in self.new_disks:
            names.by_id(path)

    @property
    def target_guid(self) -> int:
        """The guid of the vdev to change; 0 for the pool itself."""
        return 0

    @property
    def new_disks(self) -> tuple[str, ...]:
        """By-id paths of the disks to be added."""
        return ()

    @property
    def subject(self) -> str:
        return self.pool

    def locks(self) -> tuple[str, ...]:
        return (self.pool, *self.new_disks)

    def disks_taken(self) -> tuple[str, ...]:
        return self.new_disks

    def find_place(self, facts: Facts) -> Place | None:
        return vdev_tree.find_vdev(facts.pool(self.pool), self.target_guid)

    def check(self, facts: Facts) -> Iterator[Reason]:
        refused = list(self.check_pool(facts))
        yield from refused
        pool = facts.pool(self.pool)
        if pool is not None and not refused:
            yield from self.check_change(facts, pool)

    def check_change(self, facts: Facts, pool: Pool) -> Iterator[Reason]:
        """Reasons against this change of a pool that is imported and running."""
        raise NotImplementedError

    def check_pool(self, facts: Facts) -> Iterator[Reason]:
        """Whether the pool is imported and can be changed at all."""
        pool = facts.pool(self.pool)
        if pool is None:
            yield missing_pool(self.pool)
        elif pool.state == "SUSPENDED":
            yield stopped_pool(self.pool)

    def check_new_disks(self, facts: Facts) -> Iterator[Reason]:
        """Whether the chosen disks are there, chosen once, and not in use."""
        if not self.new_disks:
            yield Reason("disk-not-chosen", "Choose at least one disk.", field="disks")
        if len(set(self.new_disks)) < len(self.new_disks):
            yield Reason("disk-twice", "A disk was chosen twice.", field="disks")
        for path in self.new_disks:
            disk = facts.disk(path)
            if disk is None:
                yield Reason(
                    "disk-missing", "The disk {disk} is no longer there.", field="disks", disk=path.rsplit("/", 1)[-1]
                )
            elif disk.blocked:
                yield Reason(
                    "disk-in-use",
                    "{disk} {use}, so it cannot be used.",
                    field="disks",
                    disk=disk_label(disk),
                    use=disk.blocked.text,
                )

    def check_fit(self, facts: Facts, place: Place) -> Iterator[Reason]:
        """Whether the chosen disks are large enough for that place, and have small enough sectors."""
        for path in self.new_disks:
            if disk := facts.disk(path):
                yield from check_disk_fits(disk, place)

    def chosen_disks(self, facts: Facts) -> list[Disk]:
        return [disk for path in self.new_disks if (disk := facts.disk(path))]

    def identity(self, facts: Facts) -> dict[str, object]:
        """What the digest covers: the pool, its shape now, the disks to be added and their content.

        When two users confirm at the same moment, the second is shown a new plan.
        """
        pool = facts.pool(self.pool)
        return {
            "operation": msgspec.to_builtins(self),
            "pool": pool.guid if pool else 0,
            "shape": [[place.vdev.guid, place.role] for place in vdev_tree.list_places(pool)] if pool else [],
            "disks": [disk.identity for disk in self.chosen_disks(facts)],
        }

    def losses(self, facts: Facts) -> tuple[Loss, ...]:
        return tuple(lost_use(disk, use) for disk in self.chosen_disks(facts) for use in disk.uses)

    def plan_with_disks(
        self,
        facts: Facts,
        change: Step,
        *,
        summary: str,
        warnings: Iterable[str] = (),
        undo: str = "",
        details: dict[str, str] | None = None,
    ) -> Plan:
        """The plan of a change that adds disks: erase their content, change the pool, read it back."""
        full = [disk for disk in self.chosen_disks(facts) if disk.uses]
        erase = (erase_step(full),) if full else ()
        verify = Step(
            "verify",
            Message("Read {pool} back and see that the new disks are in it", pool=self.pool),
            shlex.join(status.READ_POOLS),
            self.verify_new_disks,
        )
        return Plan(
            summary=summary,
            steps=(*erase, change, verify),
            identity=self.identity(facts),
            losses=self.losses(facts),
            warnings=tuple(warnings),
            undo=Message("What was on the disks before cannot be recovered.") if full else undo,
            type_to_confirm=self.pool if full else "",
            details=details or {},
        )

    def verify_new_disks(self, work: Work) -> None:
        pool = read_back(self.pool)
        for path in self.new_disks:
            place = self.find_new_disk(pool, path)
            if place is None:
                raise Failed(Message("{path} is not part of {pool}", path=path.rsplit("/", 1)[-1], pool=self.pool))
            if place.vdev.state not in vdev_state.HEALTHY:
                raise Failed(
                    Message(
                        "{path} is part of {pool} but its state is {state}",
                        path=path.rsplit("/", 1)[-1],
                        pool=self.pool,
                        state=place.vdev.state,
                    )
                )
            work.note(Message("{vdev} is part of {pool}", vdev=place.vdev.name, pool=self.pool))

    def find_new_disk(self, pool: Pool | None, path: str) -> Place | None:
        """The place that a chosen disk has got in the pool."""
        return vdev_tree.find_disk(pool, path)

    def has_new_disks(self, facts: Facts) -> bool:
        """Whether every chosen disk is in the pool."""
        pool = facts.pool(self.pool)
        return bool(self.new_disks) and all(self.find_new_disk(pool, path) is not None for path in self.new_disks)

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "erase":
            return self.has_new_disks(facts) or all(disk.free for disk in self.chosen_disks(facts))
        return self.has_new_disks(facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.has_new_disks(facts):
            return Message("The disk is part of {pool} now. Look at the pool's page.", pool=self.pool)
        gone = [path.rsplit("/", 1)[-1] for path in self.new_disks if facts.disk(path) is None]
        if gone:
            return Message(
                "{pool} has not changed, and {gone} does not answer. Put the disk back or choose another, "
                "then start again.",
                pool=self.pool,
                gone=", ".join(gone),
            )
        return Message("{pool} has not changed. Look at its page, then start again.", pool=self.pool)


class VdevChange(VdevOperation):
    """A change of one vdev of a pool, named by its guid because its disk may be gone."""

    vdev: int

    @property
    def target_guid(self) -> int:
        return self.vdev

    def check_change(self, facts: Facts, pool: Pool) -> Iterator[Reason]:
        place = self.find_place(facts)
        if place is None:
            yield missing_vdev(self.pool)
        else:
            yield from self.check_place(facts, pool, place)

    def check_place(self, facts: Facts, pool: Pool, place: Place) -> Iterator[Reason]:
        """Reasons against this change of a vdev that is in the pool."""
        raise NotImplementedError

    def find_disk_place(self, facts: Facts) -> Place:
        """The place of the disk, or a stand-in with the same guid where the pool no longer has it."""
        return self.find_place(facts) or Place(Vdev("", "disk", self.vdev, "UNKNOWN"))


def check_not_rebuilding(pool: Pool) -> Iterator[Reason]:
    """Refuse a change while the pool rebuilds."""
    if pool.rebuilding:
        yield Reason(
            "pool-rebuilding",
            "{pool} is rebuilding. Wait until the rebuild has ended.",
            field="vdev",
            pool=pool.name,
        )


def check_no_sequential_rebuild(pool: Pool) -> Iterator[Reason]:
    """Refuse another disk while a mirror is rebuilt sequentially, which somebody began at the
    shell (``zpool attach -s``).

    ZFS would refuse it at the command, when the disk is erased already (``spa_vdev_attach``).
    """
    if any(work.kind == "resilver" and work.subject and work.state == "running" for work in pool.work):
        yield from check_not_rebuilding(pool)


def check_not_removing(pool: Pool) -> Iterator[Reason]:
    """Refuse a change while a group of the pool is emptied (``spa_vdev_removal`` in ``spa.c``)."""
    if any(vdev.removing for vdev in pool.vdevs):
        yield Reason("pool-removing", "A part of {pool} is being removed. Wait until that has ended.", pool=pool.name)


def check_no_checkpoint(pool: Pool) -> Iterator[Reason]:
    """Refuse to remove, attach or detach anything while the pool has a checkpoint, or is still discarding one.

    ZFS would refuse it at the command, a spare, log or cache included (``spa_vdev_remove``, ``_attach``, ``_detach``).
    """
    if pool.checkpoint and pool.checkpoint.state == "exists":
        yield Reason(
            "checkpoint-in-the-way",
            "{pool} has a checkpoint, and while it is kept ZFS neither replaces nor removes disks, nor adds "
            "any to a group. Discard it first.",
            pool=pool.name,
        )
    elif pool.checkpoint:
        yield Reason(
            "checkpoint-being-discarded",
            "{pool} is still discarding its last checkpoint. Wait until that has ended.",
            pool=pool.name,
        )


def missing_vdev(pool: str) -> Reason:
    """The reason against changing a vdev that the pool no longer has."""
    return Reason(
        "vdev-missing", "That part of {pool} is no longer there. Look at the pool again.", field="vdev", pool=pool
    )


def check_sector_size(disk: Disk, ashift: int) -> Iterator[Reason]:
    """Refuse a disk that cannot take writes as small as the pool's. Unknown ``ashift`` (0) refuses nothing."""
    if ashift and disk.logical_sector > 1 << ashift:
        yield Reason(
            "disk-sector-too-large",
            "{disk} only takes writes of {sector} bytes. This pool uses writes of {writes} bytes (ashift "
            "{ashift}), and that cannot be changed. Choose a disk that takes writes of {writes} bytes (most "
            "are sold as 512e).",
            field="disks",
            disk=disk_label(disk),
            sector=disk.logical_sector,
            writes=1 << ashift,
            ashift=ashift,
        )


def check_disk_fits(disk: Disk, place: Place) -> Iterator[Reason]:
    """Refuse a disk that cannot take that place, or share it with the disk that is there."""
    missing = vdev_tree.missing_bytes(disk, place)
    if missing:
        yield Reason(
            "disk-too-small",
            "{disk} is too small by {missing}. ZFS needs at least {needed} here after the partition table. "
            "Disks sold with the same size can differ by this much; choose another disk.",
            field="disks",
            disk=disk_label(disk),
            missing=vdev_tree.shortage_text(missing),
            needed=size_text(vdev_tree.needed_bytes(place)),
        )
    yield from check_sector_size(disk, place.group.ashift)


def sector_warning(disks: Iterable[Disk], ashift: int) -> Iterator[str]:
    """Warn of disks whose physical sectors are larger than the pool's, which makes them slow."""
    for disk in disks:
        if ashift and disk.logical_sector <= 1 << ashift < disk.physical_sector:
            yield Message(
                "{disk} has physical sectors of {physical_sector} bytes, and this part of the pool writes "
                "{number} bytes at a time. It works, but writing will be slow. This cannot be changed for "
                "this pool.",
                disk=disk_label(disk),
                physical_sector=disk.physical_sector,
                number=1 << ashift,
            )


def ashift_option(ashift: int) -> list[str]:
    """The zpool option for a sector size; none where it is unknown (0)."""
    return ["-o", f"ashift={ashift}"] if ashift else []


def read_back(name: str) -> Pool:
    """Read the pool again. Raises Failed where it is not found."""
    pool = next((pool for pool in status.read_pools() if pool.name == name), None)
    if pool is None:
        raise Failed(Message("{name} cannot be found", name=name))
    return pool
