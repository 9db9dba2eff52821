"""Which disk took the place of the one that a guide replaces, and which jobs are part of that replacement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from appliance.facts import vdev_state
from appliance.facts.box import Pool, Vdev
from appliance.operation import kind_of
from appliance.pools.vdevs.online_offline import OfflineDisk, OnlineDisk
from appliance.pools.vdevs.replace import REPLACEABLE, DetachDisk, ReplaceDisk
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place
from web.disks.models import Replacement
from web.jobs.models import Job

REPLACE = kind_of(ReplaceDisk)
KINDS = (REPLACE, *map(kind_of, (OfflineDisk, OnlineDisk, DetachDisk)))
MOST_JOBS = 100  # that are looked through; others of these kinds are rare


def find_new_device(case: Replacement, pool: Pool) -> Vdev | None:
    """The device that takes the old one's place, or has it now; None where there is none, or where several could be it.

    No query as long as the old device is in the pool, two or three afterwards.
    """
    place = vdev_tree.find_vdev(pool, int(case.vdev_guid))
    if place is not None:
        return find_sibling(case, place)
    found = find_known(case, pool)
    if found is not None:
        return found
    unclaimed = unclaimed_devices(case, pool)
    return unclaimed[0] if len(unclaimed) == 1 else None


def is_over(pool: Pool, new: Vdev | None) -> bool:
    """Whether nothing of a replacement is left to do once the old disk has left the pool:
    ``new``, which took its place, is in use and has all its data, or nothing that is known took it."""
    return new is None or not (new.state in vdev_state.LOST or pool.rebuilding or pool.lags(new))


def find_sibling(case: Replacement, place: Place) -> Vdev | None:
    """The last of the devices beside the old one that were not in the pool when the replacement began."""
    if place.parent is None or place.parent.kind != "replacing":
        return None
    others = [child for child in place.parent.children if child.guid != place.vdev.guid]
    new = [device for child in others for device in child.devices() if str(device.guid) not in case.guids]
    return new[-1] if new else None


def find_known(case: Replacement, pool: Pool) -> Vdev | None:
    """The device that was seen beside the old one, or the disk that was accepted, where that is in the pool."""
    new = {str(device.guid): device for device in new_devices(case, pool)}
    if case.new_guid in new:
        return new[case.new_guid]
    claimed = claimed_guids(case)
    for job in jobs_of(case):
        fields = operation_fields(job)
        place = vdev_tree.find_disk(pool, str(fields.get("disk", ""))) if job.kind == REPLACE else None
        if place and str(place.vdev.guid) in new.keys() - claimed:
            return place.vdev
    return None


def unclaimed_devices(case: Replacement, pool: Pool) -> list[Vdev]:
    """The devices that were not in the pool when the replacement began, and that no other guide has as its new disk."""
    claimed = claimed_guids(case)
    return [device for device in new_devices(case, pool) if str(device.guid) not in claimed]


def new_devices(case: Replacement, pool: Pool) -> Iterator[Vdev]:
    """The devices that were not in the pool when the replacement began, without spares and caches."""
    known = set(case.guids)
    for vdev in pool.vdevs:
        if vdev.role in REPLACEABLE:
            yield from (device for device in vdev.devices() if str(device.guid) not in known)


def claimed_guids(case: Replacement) -> set[str]:
    """The guids of the new disks of the pool's other replacements."""
    others = Replacement.objects.filter(pool_guid=case.pool_guid).exclude(pk=case.pk).exclude(new_guid="")
    return set(others.values_list("new_guid", flat=True))


def jobs_of(case: Replacement, *new: int) -> Iterator[Job]:
    """The jobs of this replacement, the newest first;
    ``new`` are guids of its new disk besides the one that is noted."""
    old, both = case.vdev_guid, {case.vdev_guid, case.new_guid, *map(str, new)}
    for job in Job.objects.filter(kind__in=KINDS, created__gte=case.begun)[:MOST_JOBS]:
        # Replacing the new disk is another guide's.
        if str(operation_fields(job).get("vdev", "")) in ({old} if job.kind == REPLACE else both):
            yield job


def operation_fields(job: Job) -> dict[str, object]:
    """The fields of a job's operation; none where they cannot be read, as an older version may have left them."""
    try:
        found = job.fields
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def note_new_disks(pools: Iterable[Pool]) -> None:
    """Store the new device of every open replacement once it is certain, so that it is known
    after the old one has left."""
    by_guid = {str(pool.guid): pool for pool in pools}
    for case in Replacement.objects.filter(closed=None):
        pool = by_guid.get(case.pool_guid)
        if pool is None:
            continue
        place = vdev_tree.find_vdev(pool, int(case.vdev_guid))
        new = find_sibling(case, place) if place else find_known(case, pool)
        if new and str(new.guid) != case.new_guid:
            Replacement.objects.filter(pk=case.pk, closed=None).update(new_guid=str(new.guid))
