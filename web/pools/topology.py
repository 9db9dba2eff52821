"""The tree of a pool as its page shows it: rows with what can be done to each, and what should be done now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils.http import urlencode

from appliance.facts.box import Facts, Pool, Vdev
from appliance.formatting import maker_size, opening, size_text
from appliance.pools import health
from appliance.pools.vdevs import clear_errors, online_offline
from appliance.pools.vdevs.expand import autoexpand_gain, data_groups
from appliance.pools.vdevs.replace import REPLACEABLE
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place
from web.disks.models import Replacement
from web.inventory.present import Box, device_label, homes

KIND_WORDS = {
    "replacing": ("being replaced", "the old and the new disk, until the new one holds everything"),
    "spare": ("a spare stands in", "the failed disk and the spare"),
}


@dataclass(frozen=True)
class Action:
    """One thing that can be done, as a link to its page."""

    text: str
    url: str
    icon: str = "chevron-right"
    danger: bool = False


@dataclass(frozen=True)
class TopologyRow:
    """A line of the tree."""

    name: str
    detail: str
    state: health.Health
    word: str
    reads: int
    writes: int
    checksums: int
    key: str
    actions: tuple[Action, ...]
    children: tuple[TopologyRow, ...]
    id: str = ""


@dataclass(frozen=True)
class Advice:
    """One thing to know about the pool now, with the page that does something about it."""

    state: str
    headline: str
    text: str = ""
    link: str = ""
    link_text: str = ""


def act_url(pool: Pool, guid: int, what: str) -> str:
    return reverse("vdev_act", args=[str(pool.guid), str(guid), what])


def add_url(pool: Pool, kind: str, guid: int = 0) -> str:
    query = f"?{urlencode({'vdev': guid})}" if guid else ""
    return reverse("add_disks", args=[str(pool.guid), kind]) + query


def replace_url(pool: Pool, guid: int) -> str:
    return f"{reverse('replace_disk', args=[str(pool.guid)])}?{urlencode({'vdev': guid})}"


def box_facts(box: Box) -> Facts:
    """The box as operations know it, from what the page has read already."""
    return Facts(tuple(card.pool for card in box.cards), disks=tuple(bay.disk for bay in box.bays))


def topology_rows(pool: Pool, box: Box) -> tuple[TopologyRow, ...]:
    """The pool's groups with all below them."""
    facts = box_facts(box)
    found = {bay.key: bay for bay in box.bays}
    lost = {one.guid: one for one in box.gone}
    filled = vdev_tree.filling(pool)

    def build_row(place: Place) -> TopologyRow:
        vdev = place.vdev
        bay = found.get(vdev_tree.link_of(vdev)) if place.leaf else None
        if vdev.children:
            name, detail = KIND_WORDS.get(vdev.kind, (vdev.name.rsplit("-", 1)[0], f"of {len(vdev.children)}"))
        elif bay:
            name = opening(bay.label)
            detail = " · ".join(filter(None, [bay.disk.model, bay.disk.serial, maker_size(bay.disk.size)]))
        else:
            name, detail = vdev_tree.label(vdev, facts), ""
            if vdev.guid in lost and lost[vdev.guid].label:
                name, detail = f"Bay {lost[vdev.guid].label}", name
        role = "" if place.role == "normal" or place.above else f"{place.role} · "
        state, word = health.of_device(vdev), health.DEVICE_STATE_WORDS.get(vdev.state, vdev.state.lower())
        if vdev.guid in filled and vdev.state == "ONLINE":
            state, word = "working", "being rebuilt"
        if vdev.removing:
            state, word = "working", "being emptied"
        return TopologyRow(
            name,
            role + detail,
            state,
            word,
            vdev.read_errors,
            vdev.write_errors,
            vdev.checksum_errors,
            bay.key if bay else "",
            tuple(vdev_actions(pool, place, facts)),
            tuple(build_row(Place(child, (*place.above, vdev))) for child in vdev.children),
            f"{vdev.guid}-{place.role}",
        )

    return tuple(build_row(Place(group)) for group in pool.vdevs)


def vdev_actions(pool: Pool, place: Place, facts: Facts) -> Iterator[Action]:
    """What can be done to a vdev. The page behind each says why not, where something speaks against it."""
    if pool.state == "SUSPENDED":
        return
    yield from leaf_actions(pool, place, facts) if place.leaf else group_actions(pool, place)
    if not place.above:
        if autoexpand_gain(place.vdev) and place.role == "normal":
            yield Action("Use the larger disks whole", act_url(pool, place.vdev.guid, "grow"), "plus")
        if place.role != "normal" or (
            len(data_groups(pool)) > 1 and not any(one.kind == "raidz" for one in data_groups(pool))
        ):
            yield Action(
                f"Take {'it' if place.role == 'normal' else f'the {place.role}'} out",
                act_url(pool, place.vdev.guid, "remove"),
                "trash",
                danger=True,
            )


def leaf_actions(pool: Pool, place: Place, facts: Facts) -> Iterator[Action]:
    vdev, parent = place.vdev, place.parent
    if place.role in REPLACEABLE:
        if vdev.state in online_offline.AWAY and not online_offline.is_surely_gone(vdev, facts):
            yield Action("Bring it online", act_url(pool, vdev.guid, "online"), "power")
        yield Action("Replace this disk", replace_url(pool, vdev.guid), "swap")
        if parent and vdev.state in online_offline.WORKING:
            yield Action("Take it offline", act_url(pool, vdev.guid, "offline"), "power")
    if parent and parent.kind in {"mirror", "replacing", "spare"}:
        yield Action(detach_text(place), act_url(pool, vdev.guid, "detach"), "undo", danger=parent.kind == "mirror")
    if place.role in REPLACEABLE and (parent is None or parent.kind == "mirror") and len(place.above) < 2:
        yield Action("Add a copy", add_url(pool, "copy", vdev.guid), "plus")
    if clear_errors.count_errors(vdev) or vdev.state == "FAULTED":
        yield Action("Clear its errors", act_url(pool, vdev.guid, "clear"), "check")


def detach_text(place: Place) -> str:
    parent = place.parent
    if parent is None or parent.kind == "mirror":
        return "Take this copy out"
    first = parent.children[0].guid == place.vdev.guid
    if parent.kind == "spare":
        return "Keep the spare in its place" if first else "Give the spare back"
    return "Go on without the old disk" if first else "Stop replacing"


def group_actions(pool: Pool, place: Place) -> Iterator[Action]:
    vdev = place.vdev
    if vdev.kind == "raidz" and not place.above:
        yield Action("Expand by a disk", add_url(pool, "expand", vdev.guid), "plus")
    if vdev.kind == "mirror" and not place.above:
        yield Action("Add a copy", add_url(pool, "copy", vdev.guid), "plus")


def pool_actions(pool: Pool) -> Iterator[Action]:
    """What can be added to the pool as a whole."""
    if pool.state == "SUSPENDED":
        return
    yield Action("Add a group of disks", add_url(pool, "group"), "plus")
    yield Action("Add a spare", add_url(pool, "spare"), "plus")
    yield Action("Add a log", add_url(pool, "log"), "plus")
    yield Action("Add a cache", add_url(pool, "cache"), "plus")


# --- what to do now -------------------------------------------------------------------------------------------------


def pool_advice(pool: Pool, box: Box) -> list[Advice]:
    """What should be done about this pool, the most pressing first. One query for replacements, one for the bays."""
    facts = box_facts(box)
    known, ports = {bay.key: bay for bay in box.bays}, homes()

    def name(device: Vdev) -> str:
        return opening(device_label(device, known, ports))

    open_cases = {case.vdev_guid: case for case in Replacement.objects.filter(pool_guid=str(pool.guid), closed=None)}
    if pool.state == "SUSPENDED":
        return list(suspended_advice(pool, facts, name))
    found = []
    for case in open_cases.values():
        found.append(replacement_advice(pool, case))
    for place in vdev_tree.places(pool):
        if place.leaf and place.role in REPLACEABLE and str(place.vdev.guid) not in open_cases:
            found += device_advice(pool, place, facts, name)
    if clear_errors.is_expansion_waiting(pool):
        found.append(
            Advice(
                "attention",
                f"Growing {pool.name} waits, although all its disks are back.",
                "It stopped when a disk did not answer. Nothing is lost; let it go on.",
                act_url(pool, pool.guid, "clear"),
                "Go on growing",
            )
        )
    for group in data_groups(pool):
        if more := autoexpand_gain(group):
            found.append(
                Advice(
                    "healthy",
                    f"The disks of {vdev_tree.group_label(group)} have become larger.",
                    f"{size_text(more)} of them lie unused, before parity.",
                    act_url(pool, group.guid, "grow"),
                    "Use them whole",
                )
            )
    return found


def replacement_advice(pool: Pool, case: Replacement) -> Advice:
    """A walk-through that is open: under way, or begun for a disk that is in use (again)."""
    page, place = reverse("replacement", args=[case.pk]), vdev_tree.find(pool, int(case.vdev_guid))
    if place and place.vdev.state in online_offline.WORKING and not (place.parent and place.parent.kind == "replacing"):
        return Advice(
            "healthy",
            f"Replacing {case.name} was begun, and the disk is in use.",
            "Go on, or end the guidance if it is to stay.",
            page,
            "Go on or end it",
        )
    return Advice("working", f"{opening(case.name)} is being replaced.", "", page, "Go on with the replacement")


def suspended_advice(pool: Pool, facts: Facts, name: Callable[[Vdev], str]) -> Iterator[Advice]:
    away = [
        device
        for device in pool.devices()
        if device.role not in {"spare", "cache"} and online_offline.is_surely_gone(device, facts)
    ]
    short = any(
        clear_errors.has_too_few_disks(group, facts) for group in pool.vdevs if group.role not in {"spare", "cache"}
    )
    if short:
        said = "; ".join(name(device) for device in away[:4])
        yield Advice(
            "failed",
            "Put the missing disks back.",
            f"Not in the box: {said}. Check cables and power. What was being written waits, and nothing is lost as long as the box stays on.",
        )
    else:
        yield Advice(
            "failed",
            f"Enough disks are back for {pool.name} to go on.",
            "Nothing more is needed than to let ZFS try them again.",
            act_url(pool, pool.guid, "clear"),
            f"Start {pool.name} again",
        )


def device_advice(pool: Pool, place: Place, facts: Facts, name: Callable[[Vdev], str]) -> Iterator[Advice]:
    vdev, parent = place.vdev, place.parent
    spare_stands_in = parent is not None and parent.kind == "spare" and parent.children[0].guid == vdev.guid
    if vdev.state in online_offline.AWAY:
        word = health.DEVICE_WORDS.get(vdev.state, "does not work")
        if parent and parent.kind == "replacing":
            new = parent.children[0].guid != vdev.guid
            if new:
                yield Advice(
                    "failed",
                    f"The new disk {name(vdev)} {word}.",
                    "The old one stays where it is. Stop replacing, then replace it with another.",
                    act_url(pool, vdev.guid, "detach"),
                    "Stop replacing",
                )
        elif not online_offline.is_surely_gone(vdev, facts) and vdev.state != "FAULTED":
            text = (
                "It is in the box again. ZFS uses it again by itself within a minute where it was pulled out; if not, tell it to."
                if vdev.state != "OFFLINE"
                else "It is in the box and waits until you want it back."
            )
            yield Advice(
                "attention", f"{name(vdev)} {word}.", text, act_url(pool, vdev.guid, "online"), "Bring it online"
            )
            yield Advice("attention", "Or is that disk to go?", "", replace_url(pool, vdev.guid), "Replace it")
        elif spare_stands_in:
            yield Advice(
                "attention",
                f"{name(vdev)} {word}; a spare stands in.",
                "Put a new disk in its place, and the spare goes back to waiting by itself. Or keep the spare there for good.",
                replace_url(pool, vdev.guid),
                "Replace it",
            )
        else:
            yield Advice(
                "attention",
                f"{name(vdev)} {word}.",
                "Put it back, or put another in its place.",
                replace_url(pool, vdev.guid),
                "Replace it",
            )
    elif spare_stands_in and parent and not pool.rebuilding:
        yield Advice(
            "attention",
            f"{name(vdev)} works again; the spare is not needed any more.",
            "",
            act_url(pool, parent.children[-1].guid, "detach"),
            "Give the spare back",
        )
    elif clear_errors.count_errors(vdev):
        yield Advice(
            "attention",
            f"{name(vdev)} has errors.",
            clear_errors.explain_errors(vdev),
            act_url(pool, vdev.guid, "clear"),
            "Clear the counts",
        )
