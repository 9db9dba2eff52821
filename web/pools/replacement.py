"""Where a replacement stands, read from the facts: it survives reloads, restarts, and people who do it by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from appliance.errors import Reason, Refused
from appliance.facts.box import Facts, Pool, Vdev
from appliance.formatting import duration, model_and_serial, opening, size_text
from appliance.pools.vdevs import clear_errors, online_offline
from appliance.pools.vdevs.replace import ReplaceDisk
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place
from web.disks.models import Replacement
from web.inventory.present import Bay, Box, device_label
from web.pools.topology import box_facts

STEPS = (
    ("offline", "Take it out of use"),
    ("pull", "Pull it out"),
    ("accept", "Put the new one in"),
    ("follow", "Rebuild"),
    ("done", "Done"),
)


@dataclass(frozen=True)
class ReplacementCandidate:
    """A disk that could take the place, with everything that speaks for and against it."""

    bay: Bay
    new: bool
    reasons: tuple[Reason, ...]
    warnings: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        return not self.reasons


@dataclass(frozen=True)
class Situation:
    """What is so now. ``step`` is one of STEPS, or ``lost`` where the pool or the disk's place is no more."""

    step: str
    state: str
    headline: str
    text: str = ""
    old_here: Bay | None = None
    candidates: tuple[ReplacementCandidate, ...] = ()
    wrong: tuple[str, ...] = ()
    new: Vdev | None = None
    new_label: str = ""
    can_offline: bool = False
    report: str = ""

    @property
    def step_index(self) -> int:
        return next((number for number, (step, _title) in enumerate(STEPS) if step == self.step), 0)


def open_replacement(pool: Pool, place: Place, box: Box, user: str) -> Replacement:
    """The row of a replacement that begins now, or the one that is open for this disk already."""
    bays = {bay.key: bay for bay in box.bays}
    link = vdev_tree.link_of(place.vdev)
    bay = bays.get(link)
    lost = next((one for one in box.gone if one.guid == place.vdev.guid), None)
    model, serial = model_and_serial(link)
    found, _made = Replacement.objects.get_or_create(
        pool_guid=str(pool.guid),
        vdev_guid=str(place.vdev.guid),
        closed=None,
        defaults={
            "pool": pool.name,
            "disk": link,
            "serial": bay.disk.serial if bay else serial,
            "model": bay.disk.model if bay else model,
            "bay": bay.label if bay else (f"bay {lost.label}" if lost and lost.label else ""),
            "known": {one.key: describe_disk(one) for one in box.bays if one.key != link},
            "guids": [str(device.guid) for device in pool.devices()],
            "begun_by": user,
        },
    )
    return found


def describe_disk(bay: Bay) -> str:
    return f"{bay.label} ({bay.disk.model}, serial {bay.disk.serial})"


def replacement_state(case: Replacement, box: Box) -> Situation:
    """Where the replacement stands."""
    facts = box_facts(box)
    pool = next((pool for pool in facts.pools if str(pool.guid) == case.pool_guid), None)
    if pool is None:
        return Situation(
            "lost", "attention", f"{case.pool} is not in use on this box.", "Import it again to go on, or close this."
        )
    place = vdev_tree.find(pool, int(case.vdev_guid))
    new = find_new_device(case, pool)
    wrong = tuple(
        text for key, text in case.known.items() if key not in {bay.key for bay in box.bays} and is_needed(key, facts)
    )
    if place is None:
        return settled_situation(case, pool, new, box)
    if place.parent and place.parent.kind == "replacing" and new:
        return rebuilding_situation(case, pool, new, box, facts, wrong)
    here = next((bay for bay in box.bays if bay.key == case.disk), None)
    gone = online_offline.is_surely_gone(place.vdev, facts)
    return swap_situation(case, pool, place, here, find_candidates(case, pool, box, facts), wrong, gone=gone)


def find_new_device(case: Replacement, pool: Pool) -> Vdev | None:
    """The device that was not in the pool when the replacement began."""
    known = set(case.guids)
    fresh = [
        device
        for vdev in pool.vdevs
        if vdev.role != "spare"
        for device in vdev.devices()
        if str(device.guid) not in known
    ]
    return fresh[-1] if fresh else None


def is_needed(key: str, facts: Facts) -> bool:
    """Whether a disk that vanished is still part of a pool, so that pulling it was a mistake."""
    return any(vdev_tree.link_of(device) == key for one in facts.pools for device in one.devices())


def settled_situation(case: Replacement, pool: Pool, new: Vdev | None, box: Box) -> Situation:
    """The old disk is no part of the pool any more."""
    if new is None:
        return Situation(
            "lost",
            "attention",
            f"{opening(case.name)} is no longer part of {pool.name}, and no new disk took its place.",
            "Somebody took it out. Look at the pool, then close this.",
        )
    label = new_disk_label(new, box)
    if new.state != "ONLINE" or pool.rebuilding:
        return Situation(
            "follow",
            "working",
            f"{label} has taken the place; {pool.name} is still at work on it.",
            new=new,
            new_label=label,
        )
    report = build_report(case, pool, new, label)
    good = pool.state == "ONLINE" and not clear_errors.count_errors(new)
    return Situation(
        "done",
        "healthy" if good else "attention",
        f"{pool.name} is complete again." if good else f"{label} is in place, but {pool.name} is not quite well.",
        report,
        new=new,
        new_label=label,
        report=report,
    )


def build_report(case: Replacement, pool: Pool, new: Vdev, label: str) -> str:
    """What was done and how it ended, in a few sentences to keep."""
    said = [f"{opening(case.name)} was replaced by {label}."]
    if pool.scan and pool.scan.kind == "resilver" and pool.scan.ended and pool.scan.ended >= case.begun:
        took = duration(max(round((pool.scan.ended - pool.scan.started).total_seconds()), 1))
        # Where another disk was away meanwhile, the last rebuilding is that disk's, and may have found nothing to do.
        if pool.scan.repaired:
            said.append(f"Rebuilding took {took} and wrote {size_text(pool.scan.repaired)}.")
        left = max(pool.scan.errors, pool.errors)
        said.append("Nothing was lost." if not left else f"{left} errors were left.")
    if clear_errors.count_errors(new):
        said.append(f"The new disk has errors already: {clear_errors.explain_errors(new)}")
    left = pool.failures_left
    said.append(
        f"{pool.name} survives {left} more failed {'disk' if left == 1 else 'disks'}."
        if left
        else f"{pool.name} survives no failed disk at the moment."
    )
    return " ".join(said)


def new_disk_label(device: Vdev, box: Box) -> str:
    return opening(device_label(device, {bay.key: bay for bay in box.bays}))


def rebuilding_situation(
    case: Replacement, pool: Pool, new: Vdev, box: Box, facts: Facts, wrong: tuple[str, ...]
) -> Situation:
    label = new_disk_label(new, box)
    if new.state in online_offline.AWAY:
        return Situation(
            "accept",
            "failed",
            f"The new disk {label} has failed as well.",
            f"{pool.name} goes on with the others. Stop with this disk and put in another one.",
            new=new,
            new_label=label,
            wrong=wrong,
            candidates=find_candidates(case, pool, box, facts),
        )
    left = pool.failures_left
    if wrong:
        return Situation(
            "follow",
            "failed",
            f"Another disk has gone while {label} is being rebuilt: {' and '.join(wrong)}.",
            f"Put it back at once if it was pulled. {pool.name} {'still works' if pool.state != 'SUSPENDED' else 'has stopped'}; do not pull anything else.",
            new=new,
            new_label=label,
            wrong=wrong,
        )
    text = "Files stay available, and the box can be restarted: it goes on afterwards. "
    text += (
        f"Until it has ended, {pool.name} survives {left} more failed {'disk' if left == 1 else 'disks'}."
        if left
        else "Until it has ended, one more failed disk loses data. Leave the other disks alone."
    )
    return Situation("follow", "working", f"{label} is being rebuilt.", text, new=new, new_label=label, wrong=wrong)


def swap_situation(
    case: Replacement,
    pool: Pool,
    place: Place,
    here: Bay | None,
    found: tuple[ReplacementCandidate, ...],
    wrong: tuple[str, ...],
    *,
    gone: bool,
) -> Situation:
    """Before the replacement has begun: the old disk is in use, out of use, or out of the box."""
    device, bay = place.vdev, case.bay or "the bay"
    if wrong:
        pulled = " and ".join(wrong)
        return Situation(
            "pull",
            "failed",
            f"That was another disk: {pulled}.",
            f"{pool.name} still needs it. Put it back into its bay now, before anything else. The one to replace is {case.name}.",
            old_here=here,
            wrong=wrong,
        )
    if device.state in online_offline.WORKING:
        can = online_offline.can_do_without(pool, place)
        text = (
            "ZFS stops using it, then it can be pulled out without surprise."
            if can
            else f"{pool.name} cannot do without it at the moment. Put the new disk into a free bay and leave this one where it is; it goes when the new one holds everything."
        )
        return Situation(
            "offline",
            "attention" if device.state != "ONLINE" else "healthy",
            f"{opening(case.name)} is still in use.",
            text,
            old_here=here,
            candidates=found,
            can_offline=can and place.parent is not None,
        )
    if here:
        return Situation(
            "pull",
            "attention",
            f"Pull out {case.name}.",
            f"ZFS no longer uses it. Look for the serial number {case.serial} on its label before you pull. This page sees which disk goes.",
            old_here=here,
            candidates=found,
        )
    if not gone:
        return Situation(
            "pull",
            "attention",
            f"Pull out {case.name}.",
            f"{pool.name} knows this disk by another name than Larder does, so this page cannot see whether it is the right one that goes. Compare the serial number with care.",
            candidates=found,
        )
    ready = any(one.is_good and one.new for one in found)
    return Situation(
        "accept",
        "attention",
        "The right disk is out." + ("" if ready else f" Put the new one into {bay}."),
        "A new disk was found. Look at it once more, then let it take the place."
        if ready
        else "It appears here within some seconds"
        + (", or take one that is in the box already" if any(one.is_good for one in found) else "")
        + ". If you have changed your mind, put the old one back: it can go on where it was.",
        candidates=found,
    )


def find_candidates(case: Replacement, pool: Pool, box: Box, facts: Facts) -> tuple[ReplacementCandidate, ...]:
    """The disks that nothing uses, those that are new since the beginning first."""
    found = []
    for bay in box.bays:
        if bay.disk.path and not bay.disk.blocked and bay.key != case.disk:
            reasons = tuple(reasons_against(case, pool, bay, facts))
            found.append(ReplacementCandidate(bay, bay.key not in case.known, reasons, tuple(disk_warnings(bay))))
    return tuple(sorted(found, key=lambda one: (not one.is_good, one.bay.number)))


def replace_operation(case: Replacement, pool: str, disk: str) -> ReplaceDisk:
    return ReplaceDisk(pool=pool, vdev=int(case.vdev_guid), disk=disk)


def reasons_against(case: Replacement, pool: Pool, bay: Bay, facts: Facts) -> Iterator[Reason]:
    """Why the disk in a bay cannot take the place of the old one."""
    try:
        yield from replace_operation(case, pool.name, bay.disk.path).check(facts)
    except Refused as refusal:
        yield from refusal.reasons
    if bay.smart_passed is False:
        yield Reason("disk-failing", "This disk reports that it is failing. Choose another one.", field="disks")


def disk_warnings(bay: Bay) -> Iterator[str]:
    """What to know about the disk in a bay before it is used."""
    if not bay.smart_text:
        yield "Its health has not been read yet; that takes a few seconds."
    for use in bay.disk.uses:
        yield f"It {use.text}. That would be erased."
