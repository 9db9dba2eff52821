"""The tree of a pool's vdevs as its page shows it: rows, each with links to what can be done."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext

from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool
from appliance.formatting import capitalize_opening, disk_size
from appliance.pools import health
from appliance.pools.vdevs import clear_errors, online_offline
from appliance.pools.vdevs.expand import autoexpand_gain
from appliance.pools.vdevs.groups import data_groups, has_parity
from appliance.pools.vdevs.remove import moves_data
from appliance.pools.vdevs.replace import REPLACEABLE
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place
from web.disks import bay_state
from web.inventory.box import Box
from web.inventory.vdev_roles import role_word
from web.translation import lazy_text, text_of

KIND_WORDS = {
    "replacing": (lazy_text("being replaced"), lazy_text("the old and the new disk, until the new one is rebuilt")),
    "spare": (lazy_text("a spare stands in"), lazy_text("the failed disk and the spare")),
}


class Action(msgspec.Struct, frozen=True):
    """One thing that can be done, as a link to its page."""

    text: str
    url: str
    icon: str = "chevron-right"
    danger: bool = False


class TopologyRow(msgspec.Struct, frozen=True):
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


def act_url(pool: Pool, guid: int, what: str) -> str:
    return reverse("vdev_act", args=[str(pool.guid), str(guid), what])


def add_url(pool: Pool, kind: str, guid: int = 0) -> str:
    query = f"?{urlencode({'vdev': guid})}" if guid else ""
    return reverse("add_disks", args=[str(pool.guid), kind]) + query


def replace_url(pool: Pool, guid: int) -> str:
    return f"{reverse('replace_disk', args=[str(pool.guid)])}?{urlencode({'vdev': guid})}"


def box_facts(box: Box) -> Facts:
    """The facts that operations need, from what the page has read already."""
    return Facts(tuple(card.pool for card in box.cards), disks=tuple(bay.disk for bay in box.bays))


def topology_rows(pool: Pool, box: Box) -> tuple[TopologyRow, ...]:
    """The rows of the pool's groups, with their children."""
    facts = box_facts(box)
    bays = {bay.key: bay for bay in box.bays}
    lost = {gone.guid: gone for gone in box.gone}
    rebuilding = vdev_tree.guids_being_filled(pool)

    def build_row(place: Place) -> TopologyRow:
        vdev = place.vdev
        bay = bays.get(vdev_tree.link_of(vdev)) if place.leaf else None
        if vdev.children:
            name, detail = KIND_WORDS.get(
                vdev.kind, (vdev.name.rsplit("-", 1)[0], gettext("of {count}").format(count=len(vdev.children)))
            )
        elif bay:
            name = capitalize_opening(bay.label)
            detail = " · ".join(filter(None, [bay.disk.model, bay.disk.serial, text_of(disk_size(bay.disk.size))]))
        else:
            name, detail = vdev_tree.vdev_label(vdev, facts), ""
            if vdev.guid in lost and lost[vdev.guid].label:
                name, detail = gettext("Bay {label}").format(label=lost[vdev.guid].label), name
        role = "" if place.role == "normal" or place.above else f"{role_word(place.role)} · "
        state, word = health.of_device(vdev), text_of(vdev_state.describe(vdev.state).word)
        if vdev.guid in rebuilding and vdev.state == "ONLINE":
            state, word = "working", gettext("waits to be rebuilt") if vdev.deferred else gettext("being rebuilt")
        if vdev.removing:
            state, word = "working", gettext("being removed")
        if bay:  # its own figures may say worse than the pool knows
            state, word = bay_state.pick_worst((state, word), (bay.state, bay.word))
        return TopologyRow(
            name,
            role + detail,
            state,
            word,
            vdev.read_errors,
            vdev.write_errors,
            vdev.checksum_errors,
            bay.key if bay else "",
            tuple(vdev_actions(pool, place, facts, failing=bool(bay and bay.is_failing))),
            tuple(build_row(Place(child, (*place.above, vdev))) for child in vdev.children),
            f"{vdev.guid}-{place.role}",
        )

    return tuple(build_row(Place(group)) for group in pool.vdevs)


def vdev_actions(pool: Pool, place: Place, facts: Facts, *, failing: bool = False) -> Iterator[Action]:
    """What can be done to a vdev; ``failing``: its own figures say so.
    Where an action is refused, its page says why."""
    if pool.state == "SUSPENDED":
        return
    yield from leaf_actions(pool, place, facts, failing=failing) if place.leaf else group_actions(pool, place)
    if not place.above:
        if autoexpand_gain(place.vdev) and place.role == "normal":
            yield Action(gettext("Use the larger disks completely"), act_url(pool, place.vdev.guid, "grow"), "plus")
        last = place.role == "normal" and len(data_groups(pool)) == 1
        if not moves_data(place) or (not last and not has_parity(pool)):
            yield Action(
                gettext("Take it out")
                if place.role == "normal"
                else gettext("Take the {role} out").format(role=role_word(place.role)),
                act_url(pool, place.vdev.guid, "remove"),
                "trash",
                danger=True,
            )


def leaf_actions(pool: Pool, place: Place, facts: Facts, *, failing: bool) -> Iterator[Action]:
    """What can be done to a single disk. Of one that is failing, errors are not cleared: it has to be replaced."""
    vdev, parent = place.vdev, place.parent
    if place.role in REPLACEABLE:
        if vdev.state in vdev_state.LOST and not online_offline.is_surely_gone(vdev, facts):
            yield Action(gettext("Bring it online"), act_url(pool, vdev.guid, "online"), "power")
        yield Action(gettext("Replace this disk"), replace_url(pool, vdev.guid), "swap")
        if parent and vdev.state in vdev_state.WORKING:
            yield Action(gettext("Take it offline"), act_url(pool, vdev.guid, "offline"), "power")
    if parent and parent.kind in {"mirror", "replacing", "spare"}:
        yield Action(detach_text(place), act_url(pool, vdev.guid, "detach"), "undo", danger=parent.kind == "mirror")
    if place.role in REPLACEABLE and (parent is None or parent.kind == "mirror") and len(place.above) < 2:
        yield Action(gettext("Add a copy"), add_url(pool, "copy", vdev.guid), "plus")
    if not failing and (clear_errors.count_errors(vdev) or vdev.state == "FAULTED"):
        yield Action(gettext("Clear its errors"), act_url(pool, vdev.guid, "clear"), "check")


def detach_text(place: Place) -> str:
    """What detaching a disk means in its place."""
    parent = place.parent
    if parent is None or parent.kind == "mirror":
        return gettext("Take this copy out")
    first = parent.children[0].guid == place.vdev.guid
    if parent.kind == "spare":
        return gettext("Keep the spare in its place") if first else gettext("Give the spare back")
    return gettext("Continue without the old disk") if first else gettext("Stop replacing")


def group_actions(pool: Pool, place: Place) -> Iterator[Action]:
    """What can be done to a group of disks."""
    vdev = place.vdev
    if vdev.kind == "raidz" and not place.above:
        yield Action(gettext("Expand by a disk"), add_url(pool, "expand", vdev.guid), "plus")
    if vdev.kind == "mirror" and not place.above:
        yield Action(gettext("Add a copy"), add_url(pool, "copy", vdev.guid), "plus")


def pool_actions(pool: Pool) -> Iterator[Action]:
    """What can be added to the pool as a whole."""
    if pool.state == "SUSPENDED":
        return
    yield Action(gettext("Add a group of disks"), add_url(pool, "group"), "plus")
    yield Action(gettext("Add a spare"), add_url(pool, "spare"), "plus")
    yield Action(gettext("Add a log"), add_url(pool, "log"), "plus")
    yield Action(gettext("Add a cache"), add_url(pool, "cache"), "plus")
