"""What all changes of a pool's shape have in common: the pool, its guids in the digest, and the disks they take."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

import msgspec

from appliance import names
from appliance.disks.clear_labels import erase_step
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Disk, Facts, Pool
from appliance.formatting import disk_label, size_text
from appliance.operation import Loss, Operation, Plan, Step, Work
from appliance.zfs import status, vdev_tree
from appliance.zfs.vdev_tree import Place

LARGEST_GUID = 2**64


class VdevOperation(Operation):
    """A change of one pool. Subclasses name new disks by their by-id paths, and say what speaks against them."""

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
        """The guid of the vdev it is about; 0 where it is about the pool itself."""
        return 0

    @property
    def new_disks(self) -> tuple[str, ...]:
        """By-id paths of the disks that it takes."""
        return ()

    @property
    def subject(self) -> str:
        return self.pool

    def locks(self) -> tuple[str, ...]:
        return (self.pool, *self.new_disks)

    def disks_taken(self) -> tuple[str, ...]:
        return self.new_disks

    def find_place(self, facts: Facts) -> Place | None:
        return vdev_tree.find(facts.pool(self.pool), self.target_guid)

    def check(self, facts: Facts) -> Iterator[Reason]:
        refused = list(self.check_pool(facts))
        yield from refused
        pool = facts.pool(self.pool)
        if pool is not None and not refused:
            yield from self.check_change(facts, pool)

    def check_change(self, facts: Facts, pool: Pool) -> Iterator[Reason]:
        """What speaks against this very change of a pool that is there and works."""
        raise NotImplementedError

    def check_pool(self, facts: Facts) -> Iterator[Reason]:
        """Whether the pool is there and can be changed at all."""
        pool = facts.pool(self.pool)
        if pool is None:
            yield Reason("pool-missing", "The pool {pool} is not in use here any more.", pool=self.pool)
        elif pool.state == "SUSPENDED":
            yield Reason(
                "pool-suspended",
                "{pool} has stopped and cannot be changed. Bring its disks back, then start it again.",
                pool=self.pool,
            )

    def check_new_disks(self, facts: Facts) -> Iterator[Reason]:
        """Whether the chosen disks are there, once each, and free to be taken."""
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
        """Whether the chosen disks can take, or share, that place: large enough, and with sectors small enough."""
        for path in self.new_disks:
            if disk := facts.disk(path):
                yield from check_disk_fits(disk, place)

    def chosen_disks(self, facts: Facts) -> list[Disk]:
        return [disk for path in self.new_disks if (disk := facts.disk(path))]

    def identity(self, facts: Facts) -> dict[str, object]:
        """What the digest covers: the pool and the very shape it has now, and which disks go in with what is on them.

        So of two people who confirm at the same moment the second is shown a new plan.
        """
        pool = facts.pool(self.pool)
        return {
            "operation": msgspec.to_builtins(self),
            "pool": pool.guid if pool else 0,
            "shape": [[place.vdev.guid, place.role] for place in vdev_tree.places(pool)] if pool else [],
            "disks": [disk.identity for disk in self.chosen_disks(facts)],
        }

    def losses(self, facts: Facts) -> tuple[Loss, ...]:
        return tuple(
            Loss(f"{disk_label(disk)} {use.text}", disk.size) for disk in self.chosen_disks(facts) for use in disk.uses
        )

    def plan_with_disks(
        self,
        facts: Facts,
        change: Step,
        *,
        summary: str,
        warnings: Iterable[str] = (),
        undo: str = "",
        told: dict[str, str] | None = None,
    ) -> Plan:
        """The plan of a change that takes disks: erase what they hold, change, read the pool back."""
        full = [disk for disk in self.chosen_disks(facts) if disk.uses]
        first = (erase_step(full),) if full else ()
        taken = Step(
            "verify",
            f"Read {self.pool} back and see that the new disks are in it",
            shlex.join(status.READ_POOLS),
            self.verify_new_disks,
        )
        return Plan(
            summary=summary,
            steps=(*first, change, taken),
            identity=self.identity(facts),
            losses=self.losses(facts),
            warnings=tuple(warnings),
            undo="Nothing can bring back what the disks held before." if full else undo,
            type_to_confirm=self.pool if full else "",
            facts=told or {},
        )

    def verify_new_disks(self, work: Work) -> None:
        pool = read_back(self.pool)
        for path in self.new_disks:
            place = vdev_tree.find_disk(pool, path)
            if place is None:
                raise Failed(f"{path.rsplit('/', 1)[-1]} is not part of {self.pool}")
            if place.vdev.state not in {"ONLINE", "AVAIL", "INUSE"}:
                raise Failed(f"{path.rsplit('/', 1)[-1]} is part of {self.pool} but its state is {place.vdev.state}")
            work.note(f"{place.vdev.name} is part of {self.pool}")

    def has_new_disks(self, facts: Facts) -> bool:
        """The probe: every chosen disk is in the pool."""
        pool = facts.pool(self.pool)
        return bool(self.new_disks) and all(vdev_tree.find_disk(pool, path) is not None for path in self.new_disks)

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "erase":
            return self.has_new_disks(facts) or all(disk.free for disk in self.chosen_disks(facts))
        return self.has_new_disks(facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.has_new_disks(facts):
            return f"The disk is part of {self.pool} now. Look at the pool's page."
        gone = [path.rsplit("/", 1)[-1] for path in self.new_disks if facts.disk(path) is None]
        if gone:
            return f"{self.pool} has not changed, and {', '.join(gone)} does not answer. Put the disk back or choose another, then start again."
        return f"{self.pool} has not changed. Look at its page, then start again."


class VdevChange(VdevOperation):
    """A change of one part of a pool, which is named by its guid: its disk may be long gone."""

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
        """What speaks against this very change of a part that is there."""
        raise NotImplementedError


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
            "{disk} only takes writes of {sector} bytes. This pool uses writes of {writes} bytes (ashift {ashift}), and that cannot be changed. Choose a disk that takes writes of {writes} bytes (most are sold as 512e).",
            field="disks",
            disk=disk_label(disk),
            sector=disk.logical_sector,
            writes=1 << ashift,
            ashift=ashift,
        )


def check_disk_fits(disk: Disk, place: Place) -> Iterator[Reason]:
    """Refuse a disk that cannot take that place, or share it with the disk that is there."""
    missing = vdev_tree.shortage(disk, place)
    if missing:
        yield Reason(
            "disk-too-small",
            "{disk} is too small by {missing}. ZFS needs at least {needed} here after the partition table. Disks sold with the same size can differ by this much; choose another disk.",
            field="disks",
            disk=disk_label(disk),
            missing=vdev_tree.shortage_text(missing),
            needed=size_text(vdev_tree.needed_bytes(place)),
        )
    yield from check_sector_size(disk, place.group.ashift)


def sector_warning(disks: Iterable[Disk], ashift: int) -> Iterator[str]:
    """A disk whose own sectors are larger than the pool's works, slowly."""
    for disk in disks:
        if ashift and disk.logical_sector <= 1 << ashift < disk.physical_sector:
            yield f"{disk_label(disk)} keeps sectors of {disk.physical_sector} bytes inside, and this part of the pool writes in {1 << ashift}. It works, but writing will be slow. It cannot be changed for this pool."


def ashift_option(ashift: int) -> list[str]:
    return ["-o", f"ashift={ashift}"] if ashift else []


def read_back(name: str) -> Pool:
    """The pool as it is now. Raises Failed where it cannot be found."""
    pool = next((pool for pool in status.read_pools() if pool.name == name), None)
    if pool is None:
        raise Failed(f"{name} cannot be found")
    return pool
