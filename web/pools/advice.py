"""What should be done about a pool now, with a link to the page that does it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import msgspec
from django.urls import reverse
from django.utils.translation import gettext
from msgspec.structs import replace

from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool, Vdev
from appliance.formatting import capitalize_opening, names_text, size_text
from appliance.pools.vdevs import clear_errors, online_offline
from appliance.pools.vdevs.expand import autoexpand_gain
from appliance.pools.vdevs.groups import data_groups
from appliance.pools.vdevs.replace import REPLACEABLE
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place
from web.disks.models import Replacement
from web.inventory.bays import Bay, device_label, read_known_bays
from web.inventory.box import Box
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.pools import new_disk
from web.pools.topology import act_url, box_facts, replace_url
from web.translation import text_of


class Advice(msgspec.Struct, frozen=True):
    """One thing to know about the pool, and the page that helps."""

    state: str
    headline: str
    text: str = ""
    link: str = ""
    link_text: str = ""


def pool_advice(pool: Pool, box: Box) -> list[Advice]:
    """What should be done about this pool, the most urgent first.
    Two queries, replacements and bays, and up to three for each replacement whose old disk has left the pool."""
    facts = box_facts(box)
    bays, ports = {bay.key: bay for bay in box.bays}, read_known_bays()

    def device_name(device: Vdev) -> str:
        return capitalize_opening(device_label(device, bays, ports))

    open_cases = {case.vdev_guid: case for case in Replacement.objects.filter(pool_guid=str(pool.guid), closed=None)}
    if pool.state == "SUSPENDED":
        return list(suspended_advice(pool, facts, device_name))
    advice = [replacement_advice(pool, case) for case in open_cases.values()]
    for place in vdev_tree.list_places(pool):
        if place.leaf and place.role in REPLACEABLE and str(place.vdev.guid) not in open_cases:
            advice += device_advice(
                pool, place, facts, device_name(place.vdev), bays.get(vdev_tree.link_of(place.vdev))
            )
    if clear_errors.is_expansion_waiting(pool):
        advice.append(
            Advice(
                "attention",
                gettext("Growing {name} is paused, although all its disks are back.").format(name=pool.name),
                gettext("It stopped when a disk did not answer. Nothing is lost; let it continue."),
                act_url(pool, pool.guid, "clear"),
                gettext("Continue growing"),
            )
        )
    for group in data_groups(pool):
        if more := autoexpand_gain(group):
            advice.append(
                Advice(
                    "healthy",
                    gettext("The disks of {group} are larger now.").format(group=text_of(vdev_tree.group_label(group))),
                    gettext("{more} of them are unused, before parity.").format(more=text_of(size_text(more))),
                    act_url(pool, group.guid, "grow"),
                    gettext("Use them whole"),
                )
            )
    return advice


def open_replacements(box: Box) -> list[tuple[Replacement, Advice]]:
    """The first 50 replacements that are not closed, each with what to do about it."""
    pools = {str(pool.guid): pool for pool in box_facts(box).pools}
    found: list[tuple[Replacement, Advice]] = []
    for case in Replacement.objects.filter(closed=None)[:50]:
        if pool := pools.get(case.pool_guid):
            found.append((case, replacement_advice(pool, case)))
        else:
            page = reverse("replacement", args=[case.pk])
            why = explain_missing_pool(case, box.odd)
            found.append((case, Advice("attention", *why, page, gettext("Continue or stop"))))
    return found


def explain_missing_pool(case: Replacement, odd: Collection[str]) -> tuple[str, str]:
    """Why the pool of a replacement is not among those of the box, and what to do;
    ``odd`` are the names of what is there and cannot be decoded."""
    if case.pool in odd:
        return gettext("{name} cannot be shown.").format(name=case.pool), gettext(
            "What Larder stored of it cannot be read. It is read again within a minute. If this stays, restart the box."
        )
    return gettext("{pool} is not in use on this box.").format(pool=case.pool), gettext(
        "Import it again to continue, or close this."
    )


def replacement_advice(pool: Pool, case: Replacement) -> Advice:
    """An open replacement: running, opened for a disk that is in use, or over and not yet closed."""
    page = reverse("replacement", args=[case.pk])
    place = vdev_tree.find_vdev(pool, int(case.vdev_guid))
    if place and place.vdev.state in vdev_state.WORKING and not (place.parent and place.parent.kind == "replacing"):
        return Advice(
            "healthy",
            gettext("Replacing {name} was begun, and the disk is in use.").format(name=case.name),
            gettext("Continue, or stop the guidance if the disk stays."),
            page,
            gettext("Continue or stop"),
        )
    if place is None and new_disk.is_over(pool, new_disk.find_new_device(case, pool)):
        return Advice(
            "healthy",
            gettext("{name} is no longer part of {pool}.").format(name=capitalize_opening(case.name), pool=pool.name),
            gettext("Read what was done, and close the replacement."),
            page,
            gettext("Read the report"),
        )
    return Advice(
        "working",
        gettext("{name} is being replaced.").format(name=capitalize_opening(case.name)),
        "",
        page,
        gettext("Continue the replacement"),
    )


def suspended_advice(pool: Pool, facts: Facts, device_name: Callable[[Vdev], str]) -> Iterator[Advice]:
    """How to start a pool again that ZFS has suspended."""
    missing = [
        device
        for device in pool.devices()
        if device.role not in {"spare", "cache"} and online_offline.is_surely_gone(device, facts)
    ]
    has_too_few = any(
        clear_errors.has_too_few_disks(group, facts) for group in pool.vdevs if group.role not in {"spare", "cache"}
    )
    copies = DatasetRow.objects.filter(name__startswith=f"{pool.name}/", is_copy=True)
    if clear_errors.holds_raw_copies(pool, replace(facts, datasets=tuple(readable_facts(copies)))):
        yield Advice(
            "failed",
            gettext("Put the disks of {name} back, then restart the box.").format(name=pool.name),
            gettext(
                "The pool has encrypted copies. If a backup to it was cut off, starting the pool again would "
                "stop the whole box. What has arrived stays, and the next run continues from there."
            ),
            reverse("box"),
            gettext("Restart the box"),
        )
    elif has_too_few:
        names = text_of(names_text([device_name(device) for device in missing], 4, "; "))
        yield Advice(
            "failed",
            gettext("Put the missing disks back."),
            gettext(
                "Not in the box: {names}. Check cables and power. What was being written waits, and nothing "
                "is lost as long as the box stays on."
            ).format(names=names),
        )
    else:
        yield Advice(
            "failed",
            gettext("Enough disks are back for {name} to start again.").format(name=pool.name),
            gettext("Let ZFS try them again."),
            act_url(pool, pool.guid, "clear"),
            gettext("Start {name} again").format(name=pool.name),
        )


def device_advice(pool: Pool, place: Place, facts: Facts, name: str, bay: Bay | None) -> Iterator[Advice]:
    """What to do about one disk of a pool; ``name`` begins a sentence."""
    vdev, parent = place.vdev, place.parent
    spare_stands_in = parent is not None and parent.kind == "spare" and parent.children[0].guid == vdev.guid
    if vdev.state in vdev_state.LOST:
        yield from missing_device_advice(pool, place, facts, name, spare_stands_in=spare_stands_in)
    elif spare_stands_in and parent and not pool.rebuilding:
        yield spared_device_advice(pool, vdev, parent.children[-1], name, bay)
    elif clear_errors.count_errors(vdev) and bay and bay.is_failing:
        # Counts that are cleared would only hide that it gets worse.
        yield Advice(
            "failed",
            gettext("{name} has errors and is failing.").format(name=name),
            gettext("{smart_text} Replace it before another disk fails.").format(smart_text=bay.smart_text),
            replace_url(pool, vdev.guid),
            gettext("Replace it"),
        )
    elif clear_errors.count_errors(vdev):
        yield Advice(
            "attention",
            gettext("{name} has errors.").format(name=name),
            clear_errors.explain_errors(vdev),
            act_url(pool, vdev.guid, "clear"),
            gettext("Clear the counts"),
        )


def spared_device_advice(pool: Pool, vdev: Vdev, spare: Vdev, name: str, bay: Bay | None) -> Advice:
    """What to do about a disk that ZFS uses while a spare stands in. ZED puts the spare in also for a disk that makes
    too many errors, which it calls degraded: the spare protects the pool from that disk until another has its place."""
    failing = bay is not None and bay.is_failing
    if vdev.state == "ONLINE" and not failing and not vdev.deferred and not clear_errors.count_errors(vdev):
        return Advice(
            "attention",
            gettext("{name} works again; the spare is not needed any more.").format(name=name),
            "",
            act_url(pool, spare.guid, "detach"),
            gettext("Give the spare back"),
        )
    if vdev.state != "ONLINE":
        headline = text_of(vdev_state.say(name, vdev.state))
    elif failing:
        headline = gettext("{name} is failing").format(name=name)
    else:
        headline = gettext("{name} has errors").format(name=name)
    advice = stand_in_advice(pool, vdev, headline)
    if bay is None or not failing:
        return advice
    return replace(advice, state="failed", text=f"{bay.smart_text} {advice.text}".strip())


def stand_in_advice(pool: Pool, vdev: Vdev, headline: str) -> Advice:
    """To replace a disk for which a spare stands in; ``headline`` says what is the matter, without a full stop."""
    return Advice(
        "attention",
        gettext("{headline}; a spare stands in.").format(headline=headline),
        gettext(
            "Put a new disk in its place, and the spare becomes free again automatically. Or keep the spare "
            "there for good."
        ),
        replace_url(pool, vdev.guid),
        gettext("Replace it"),
    )


def missing_device_advice(
    pool: Pool, place: Place, facts: Facts, name: str, *, spare_stands_in: bool
) -> Iterator[Advice]:
    """What to do about a disk that ZFS does not use. What happened to it is said once, by the notice above."""
    vdev, parent = place.vdev, place.parent
    headline = text_of(vdev_state.say(name, vdev.state))
    replace_page = replace_url(pool, vdev.guid)
    if parent and parent.kind == "replacing":
        if parent.children[0].guid != vdev.guid:
            yield Advice(
                "failed",
                gettext("The new disk {headline}.").format(headline=headline),
                gettext("The old one stays where it is. Stop replacing, then replace it with another one."),
                act_url(pool, vdev.guid, "detach"),
                gettext("Stop replacing"),
            )
    elif not online_offline.is_surely_gone(vdev, facts) and vdev.state != "FAULTED":
        bring_page, bring = act_url(pool, vdev.guid, "online"), gettext("Bring it online")
        if vdev.state == "OFFLINE":
            headline = gettext("{name} stays offline until you bring it online.").format(name=name)
            yield Advice("attention", headline, "", bring_page, bring)
        elif vdev_tree.disk_of(vdev, facts) is None:
            headline = gettext("{name} may not be in the box.").format(name=name)
            text = gettext(
                "{pool} knows it by a name that Larder cannot match to a disk. Check its cables and power. "
                "If it is there, bring it online."
            ).format(pool=pool.name)
            yield Advice("attention", headline, text, bring_page, bring)
        else:
            text = gettext(
                "If it was pulled out, ZFS uses it again automatically within a minute. Otherwise bring it online."
            )
            headline = gettext("{name} is in the box again.").format(name=name)
            yield Advice("attention", headline, text, bring_page, bring)
        yield Advice("attention", gettext("Do you want to replace that disk?"), "", replace_page, gettext("Replace it"))
    elif spare_stands_in:
        yield stand_in_advice(pool, vdev, headline)
    else:
        missing = vdev.state in vdev_state.ABSENT
        headline = (gettext("{name} is missing.") if missing else gettext("{name} is not in use.")).format(name=name)
        text = gettext("Put it back, or put another one in its place.")
        yield Advice("attention", headline, text, replace_page, gettext("Replace it"))
