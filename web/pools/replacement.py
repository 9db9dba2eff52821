"""The state of a disk's replacement, derived from the facts, so that it survives restarts and work done by hand."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from django.utils.translation import gettext, ngettext

from appliance.errors import Reason, Refused
from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool, Vdev
from appliance.formatting import capitalize_opening, duration_text, list_with_and, model_and_serial, size_text
from appliance.message import Message, join_messages
from appliance.pools.vdevs import clear_errors, online_offline
from appliance.pools.vdevs.replace import ReplaceDisk
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place
from web.disks.models import Replacement
from web.inventory.bays import Bay, device_name
from web.inventory.box import Box
from web.pools import advice, new_disk, wrong_disk
from web.pools.topology import box_facts, replace_url
from web.said import said_in
from web.translation import text_of

STEPS = ("choose", "offline", "pull", "accept", "follow", "done")  # titles: REPLACEMENT_STEPS


class ReplacementCandidate(msgspec.Struct, frozen=True):
    """A disk that could take the place, with reasons against it and warnings."""

    bay: Bay
    new: bool
    reasons: tuple[Reason, ...]
    warnings: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        return not self.reasons

    @property
    def is_advised(self) -> bool:
        """Whether it is to be proposed. One that failed its burn-in can still be chosen."""
        return self.is_good and not self.bay.is_unfit


class Situation(msgspec.Struct, frozen=True):
    """The current state. ``step`` is one of STEPS, or ``lost`` where the pool or the disk's place is gone."""

    step: str
    state: str
    headline: str
    text: str = ""
    old_here: Bay | None = None
    candidates: tuple[ReplacementCandidate, ...] = ()
    wrong: tuple[str, ...] = ()
    new: Vdev | None = None
    can_offline: bool = False
    replace_link: str = ""  # the page that replaces the new disk, which has failed
    report: str = ""

    @property
    def step_index(self) -> int:
        return STEPS.index(self.step) if self.step in STEPS else -1


def open_replacement(pool: Pool, place: Place, box: Box, user: str) -> Replacement:
    """Open a replacement for this disk, or return the one that is open already."""
    bays = {bay.key: bay for bay in box.bays}
    link = vdev_tree.link_of(place.vdev)
    bay = bays.get(link)
    lost = next((gone for gone in box.gone if gone.guid == place.vdev.guid), None)
    model, serial = model_and_serial(link)
    seat = Message("bay {name}", name=bay.name) if bay else ""
    if lost and lost.label and not bay:
        seat = Message("bay {name}", name=lost.label)
    others = {other.key: describe_disk(other) for other in box.bays if other.key != link}
    case, _created = Replacement.objects.get_or_create(
        pool_guid=str(pool.guid),
        vdev_guid=str(place.vdev.guid),
        closed=None,
        defaults={
            "pool": pool.name,
            "disk": link,
            "serial": bay.disk.serial if bay else serial,
            "model": bay.disk.model if bay else model,
            "bay": seat,
            "known": others,
            "said": said_in(seat, others),
            "guids": [str(device.guid) for device in pool.devices()],
            "begun_by": user,
        },
    )
    return case


def describe_disk(bay: Bay) -> str:
    """A disk by bay, model and serial number."""
    return Message("bay {name} ({model}, serial {serial})", name=bay.name, model=bay.disk.model, serial=bay.disk.serial)


def replacement_state(case: Replacement, box: Box) -> Situation:
    """The state of a replacement now."""
    facts = box_facts(box)
    pool = next((pool for pool in facts.pools if str(pool.guid) == case.pool_guid), None)
    if pool is None:
        return Situation("lost", "attention", *advice.explain_missing_pool(case, box.odd))
    place = vdev_tree.find_vdev(pool, int(case.vdev_guid))
    new = new_disk.find_new_device(case, pool)
    wrong = wrong_disk.missing_disks(case, box, facts)
    if place is None:
        return settled_situation(case, pool, new, box)
    if place.parent and place.parent.kind == "replacing" and new:
        return rebuilding_situation(case, pool, new, box, facts, wrong)
    here = next((bay for bay in box.bays if bay.key == case.disk), None)
    gone = online_offline.is_surely_gone(place.vdev, facts)
    return swap_situation(case, pool, place, here, find_candidates(case, pool, box, facts), wrong, gone=gone)


def settled_situation(case: Replacement, pool: Pool, new: Vdev | None, box: Box) -> Situation:
    """The situation once the old disk is no longer part of the pool."""
    name = capitalize_opening(case.name)
    if new is None and new_disk.unclaimed_devices(case, pool):
        return Situation(
            "lost",
            "attention",
            gettext("{name} is no longer part of {pool}.").format(name=name, pool=pool.name),
            gettext("Larder did not see which disk took its place. Look at the pool, then close this."),
        )
    if new is None:
        return Situation(
            "lost",
            "attention",
            gettext("{name} is no longer part of {name_2}, and no new disk took its place.").format(
                name=name, name_2=pool.name
            ),
            gettext("Somebody removed it. Look at the pool, then close this."),
        )
    named = name_new_disk(new, box)
    label = text_of(capitalize_opening(named))
    if new.state in vdev_state.LOST:
        return failed_situation(case, pool, new, named)
    if not new_disk.is_over(pool, new):
        return Situation(
            "follow",
            "working",
            gettext("{label} has taken the place. {name} is still being rebuilt.").format(label=label, name=pool.name),
            new=new,
        )
    report = build_report(case, pool, new, named)
    good = pool.state == "ONLINE" and new.state == "ONLINE" and not clear_errors.count_errors(new)
    return Situation(
        "done",
        "healthy" if good else "attention",
        gettext("{name} is complete again.").format(name=pool.name)
        if good
        else gettext("{label} is in place, but {name} is not healthy.").format(label=label, name=pool.name),
        report,
        new=new,
        report=report,
    )


def failed_situation(case: Replacement, pool: Pool, new: Vdev, named: str) -> Situation:
    """The situation once the new disk, in the place of the old one, is not used by ZFS any more."""
    said = vdev_state.say(capitalize_opening(named), new.state)
    replaced = Message("{old} was replaced by {new}.", old=capitalize_opening(case.named), new=named)
    return Situation(
        "follow",
        "failed",
        gettext("{said}. It had taken the place of the old disk.").format(said=text_of(said)),
        gettext("If it was pulled out or taken offline, bring it back. Otherwise replace it as well."),
        new=new,
        replace_link=replace_url(pool, new.guid),
        report=join_messages([replaced, Message("{said}.", said=said), describe_survival(pool)]),
    )


def build_report(case: Replacement, pool: Pool, new: Vdev, label: str) -> str:
    """What was done and how it ended, in a few sentences that are stored."""
    sentences: list[str] = [Message("{old} was replaced by {new}.", old=capitalize_opening(case.named), new=label)]
    if pool.scan and pool.scan.kind == "resilver" and pool.scan.ended and pool.scan.ended >= case.begun:
        took = duration_text(max(round((pool.scan.ended - pool.scan.started).total_seconds()), 1))
        # If another disk was missing meanwhile, the last resilver is that disk's and may have written nothing.
        if pool.scan.repaired:
            wrote = size_text(pool.scan.repaired)
            sentences.append(Message("Rebuilding took {took} and wrote {size}.", took=took, size=wrote))
        left = max(pool.scan.errors, pool.errors)
        sentences.append(Message("Nothing was lost.") if not left else Message("{left} errors were left.", left=left))
    if clear_errors.count_errors(new):
        sentences.append(Message("The new disk has errors already: {errors}", errors=clear_errors.explain_errors(new)))
    return join_messages([*sentences, describe_survival(pool)])


def describe_survival(pool: Pool) -> str:
    """How many disks may still fail."""
    left = pool.failures_left
    if not left:
        return Message("{name} survives no failed disk at the moment.", name=pool.name)
    if left == 1:
        return Message("{name} survives {left} more failed disk.", name=pool.name, left=left)
    return Message("{name} survives {left} more failed disks.", name=pool.name, left=left)


def name_new_disk(device: Vdev, box: Box) -> str:
    """The new disk, as a message."""
    return device_name(device, {bay.key: bay for bay in box.bays})


def rebuilding_situation(
    case: Replacement, pool: Pool, new: Vdev, box: Box, facts: Facts, wrong: tuple[str, ...]
) -> Situation:
    """The situation while the new disk is being rebuilt, or has failed at it."""
    label = text_of(name_new_disk(new, box))
    if new.state in vdev_state.LOST:
        return Situation(
            "accept",
            "failed",
            gettext("The new disk {label} has failed as well.").format(label=label),
            gettext("{name} keeps running on the other disks. Stop with this disk and put in another one.").format(
                name=pool.name
            ),
            new=new,
            wrong=wrong,
            candidates=find_candidates(case, pool, box, facts),
        )
    left = pool.failures_left
    if wrong:
        return Situation(
            "follow",
            "failed",
            gettext("Another disk is missing while {label} is being rebuilt: {wrong}.").format(
                label=label, wrong=text_of(list_with_and(wrong))
            ),
            gettext("Put it back at once if it was pulled. {name} {part}; do not pull anything else.").format(
                name=pool.name,
                part=gettext("still serves its files") if pool.state != "SUSPENDED" else gettext("has stopped"),
            ),
            new=new,
            wrong=wrong,
        )
    text = gettext("Files stay available, and the box can be restarted: the rebuild continues afterwards. ")
    text += (
        ngettext(
            "Until it has ended, {name} survives {left} more failed disk.",
            "Until it has ended, {name} survives {left} more failed disks.",
            left,
        ).format(name=pool.name, left=left)
        if left
        else gettext("Until it has ended, one more failed disk loses data. Leave the other disks alone.")
    )
    return Situation(
        "follow",
        "working",
        gettext("{label} is being rebuilt.").format(label=capitalize_opening(label)),
        text,
        new=new,
        wrong=wrong,
    )


def swap_situation(
    case: Replacement,
    pool: Pool,
    place: Place,
    old_bay: Bay | None,
    candidates: tuple[ReplacementCandidate, ...],
    wrong: tuple[str, ...],
    *,
    gone: bool,
) -> Situation:
    """The situation before the rebuild: the old disk is in use, offline, or out of the box."""
    if wrong:
        return Situation(
            "pull",
            "failed",
            gettext("That was another disk: {wrong}.").format(wrong=text_of(list_with_and(wrong))),
            gettext(
                "{name} still needs it. Put it back into its bay now, before anything else. The one to "
                "replace is {name_2}."
            ).format(name=pool.name, name_2=case.name),
            old_here=old_bay,
            wrong=wrong,
        )
    if place.vdev.state in vdev_state.WORKING:
        return in_use_situation(case, pool, place, old_bay, candidates)
    if old_bay or not gone:
        text = (
            gettext(
                "ZFS no longer uses it. Look for the serial number {serial} on its label before you pull. "
                "This page sees which disk is pulled out."
            ).format(serial=case.serial)
            if old_bay
            else gettext(
                "{name} knows this disk by another name than Larder does, so this page cannot see whether "
                "the right one is pulled out. Compare the serial number carefully."
            ).format(name=pool.name)
        )
        return Situation(
            "pull",
            "attention",
            gettext("Pull out {name}.").format(name=case.name),
            text,
            old_here=old_bay,
            candidates=candidates,
        )
    return pulled_situation(case, candidates)


def in_use_situation(
    case: Replacement,
    pool: Pool,
    place: Place,
    old_bay: Bay | None,
    candidates: tuple[ReplacementCandidate, ...],
) -> Situation:
    """The situation while ZFS still uses the old disk."""
    can_offline = online_offline.can_do_without(pool, place)
    return Situation(
        "offline",
        "attention" if place.vdev.state != "ONLINE" else "healthy",
        gettext("{name} is still in use.").format(name=capitalize_opening(case.name)),
        gettext("ZFS stops using it, then it can be pulled out safely.")
        if can_offline
        else gettext(
            "{name} cannot do without it at the moment. Put the new disk into a free bay and leave this one "
            "where it is until the new one is rebuilt."
        ).format(name=pool.name),
        old_here=old_bay,
        candidates=candidates,
        can_offline=can_offline and place.parent is not None,
    )


def pulled_situation(case: Replacement, candidates: tuple[ReplacementCandidate, ...]) -> Situation:
    """The situation once the old disk is out of the box."""
    is_ready = any(candidate.is_advised and candidate.new for candidate in candidates)
    choose_other = (
        gettext(", or choose one that is in the box already") if any(other.is_advised for other in candidates) else ""
    )
    return Situation(
        "accept",
        "attention",
        gettext("The right disk is out.")
        + ("" if is_ready else gettext(" Put the new one into {bay}.").format(bay=case.bay or gettext("the bay"))),
        gettext("A new disk was found. Check it, then let it take the place.")
        if is_ready
        else gettext(
            "It appears here within some seconds{choose_other}. If you have changed your mind, put the old "
            "one back: it can be used again."
        ).format(choose_other=choose_other),
        candidates=candidates,
    )


def find_candidates(case: Replacement, pool: Pool, box: Box, facts: Facts) -> tuple[ReplacementCandidate, ...]:
    """The free disks, the suitable ones first, of these last what failed its burn-in or is failing."""
    candidates = []
    for bay in box.bays:
        if bay.disk.path and not bay.disk.blocked and bay.key != case.disk:
            reasons = tuple(reasons_against(case, pool, bay, facts))
            candidates.append(ReplacementCandidate(bay, bay.key not in case.known, reasons, tuple(disk_warnings(bay))))
    return tuple(sorted(candidates, key=lambda one: (not one.is_good, not one.is_advised, one.bay.number)))


def replace_operation(case: Replacement, pool: str, disk: str) -> ReplaceDisk:
    """The operation that puts ``disk`` (a by-id path) in the place of the old one."""
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
        yield gettext("Its health has not been read yet; that takes a few seconds.")
    for use in bay.disk.uses:
        yield gettext("It {text}. That would be erased.").format(text=text_of(use.text))
