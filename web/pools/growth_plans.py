"""Plans to replace the disks of a pool one after the other: begin one, and what it says on the pool's page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from django.urls import reverse
from django.utils.translation import gettext
from msgspec.structs import replace

from appliance.facts.box import Pool, Vdev
from appliance.formatting import about_days, capitalize_opening, disk_size
from appliance.message import Message, shorten
from appliance.pools.growth_plan import PlanState, find_moves, read_plan, read_seats
from appliance.zfs import vdev_tree
from web.inventory.bays import Bay, KnownBays, bays_by_key, device_label, device_name, read_known_bays
from web.inventory.box import Box
from web.pools.models import GrowthPlan
from web.pools.topology import act_url, replace_url
from web.said import said_in
from web.translation import text_of

STANDS = timedelta(days=30)  # without a step: time for a gentle reminder


class TakenPlace(msgspec.Struct, frozen=True):
    """Which disk took the place of which, in words. ``at``: when that was seen; None where Larder did not see it."""

    old: str
    new: str = ""
    at: datetime | None = None


class PlanProgress(msgspec.Struct, frozen=True):
    """How far a plan is, in words, with the page of its next step."""

    plan: GrowthPlan
    state: PlanState
    headline: str
    text: str
    link: str = ""
    link_text: str = ""
    places: tuple[TakenPlace, ...] = ()


def open_plan(key: str) -> GrowthPlan | None:
    """The open plan of the pool with that guid. One query."""
    return GrowthPlan.objects.filter(pool_guid=key, ended=None).first()


def begin_plan(pool: Pool, targets: tuple[int, ...], size: int, box: Box, user: str, now: datetime) -> GrowthPlan:
    """Begin to replace these disks by ones of ``size`` bytes; the plan that is open already, where there is one."""
    labels = name_devices(pool, bays_by_key(box.bays), read_known_bays())
    called = [[str(guid), labels.get(guid, Message("a disk"))] for guid in targets]
    plan, _made = GrowthPlan.objects.get_or_create(
        pool_guid=str(pool.guid),
        ended=None,
        defaults={
            "pool": pool.name,
            "size": size,
            "targets": called,
            "said": said_in(called),
            "seats": read_seats(pool),
            "moved": now,
            "begun": now,
            "begun_by": user,
        },
    )
    return plan


def name_devices(pool: Pool, bays: dict[str, Bay], homes: KnownBays | None) -> dict[int, str]:
    """What the disks of a pool are called, by their guids."""
    return {device.guid: device_name(device, bays, homes) for device in pool.devices()}


def note_places(
    plan: GrowthPlan, pool: Pool, bays: dict[str, Bay], homes: KnownBays | None, now: datetime
) -> list[str]:
    """Put into the plan which disks took which places since the last look, without saving it; returns the fields that
    have changed. Disks that the plan is not about are left out."""
    seats = read_seats(pool)
    if seats == plan.seats:
        return []
    about = {str(guid) for guid in plan.guids} | {new for _old, new, _label, _at in plan.replaced}
    moves = [(old, new) for old, new in find_moves(plan.seats, seats) if old in about]
    if moves:
        labels = name_devices(pool, bays, homes)
        came = [[old, new, labels.get(int(new), Message("a disk")), int(now.timestamp())] for old, new in moves]
        plan.replaced, plan.said = [*plan.replaced, *came], plan.said | said_in(came)
    plan.seats = seats
    return ["seats", "replaced", "said"]


def known_places(plan: GrowthPlan) -> tuple[TakenPlace, ...]:
    """Which disk took whose place under the plan, the first first."""
    return tuple(
        TakenPlace(plan.label_of(int(old)), capitalize_opening(text_of(new)), datetime.fromtimestamp(at, UTC))
        for old, _guid, new, at in plan.replaced
    )


def lost_places(plan: GrowthPlan, pool: Pool) -> tuple[TakenPlace, ...]:
    """The disks of the plan that have gone without Larder having seen for which; not those that the next look finds."""
    told = {old for old, *_more in plan.replaced} | {old for old, _new in find_moves(plan.seats, read_seats(pool))}
    present = {device.guid for device in pool.devices()}
    return tuple(
        TakenPlace(plan.label_of(guid)) for guid in plan.guids if guid not in present and str(guid) not in told
    )


def last_plan(key: str) -> GrowthPlan | None:
    """The plan of the pool with that guid that ended last, where disks were replaced under it. One query."""
    found = GrowthPlan.objects.filter(pool_guid=key).exclude(ended=None).order_by("-ended").first()
    return found if found and found.replaced else None


def end_plan(plan: GrowthPlan, outcome: str, now: datetime) -> None:
    """Close a plan. Twice is harmless."""
    said = plan.said | said_in(outcome)
    GrowthPlan.objects.filter(pk=plan.pk, ended=None).update(ended=now, outcome=shorten(outcome, 400), said=said)


def describe_plan(plan: GrowthPlan, pool: Pool, box: Box, now: datetime) -> PlanProgress:
    """How far a plan is, what is next, and which disks took which places. One query."""
    return replace(describe_next(plan, pool, box, now), places=known_places(plan) + lost_places(plan, pool))


def describe_next(plan: GrowthPlan, pool: Pool, box: Box, now: datetime) -> PlanProgress:
    """How far a plan is, and what is next. One query."""
    state = read_plan(pool, plan.guids, plan.size)
    count = gettext("{done} of {total} disks are replaced by ones of {size}.").format(
        done=state.done, total=state.total, size=text_of(disk_size(plan.size))
    )
    bays, homes = bays_by_key(box.bays), read_known_bays()

    def label(guid: int) -> str:
        place = vdev_tree.find_vdev(pool, guid)
        device: Vdev | None = place.vdev if place else None
        return device_label(device, bays, homes) if device else plan.label_of(guid)

    if state.running or pool.rebuilding:
        what = capitalize_opening(label(state.running)) if state.running else gettext("A disk")
        return PlanProgress(
            plan,
            state,
            gettext("{what} is being replaced.").format(what=what),
            gettext("{count} Wait until the rebuild has ended.").format(count=count),
        )
    if state.next:
        waits = (now - plan.moved).days
        since = (
            gettext(" Nothing has happened for {waits}.").format(waits=text_of(about_days(waits)))
            if now - plan.moved > STANDS
            else ""
        )
        return PlanProgress(
            plan,
            state,
            gettext("Next to be replaced by a larger disk: {next}.").format(next=label(state.next)),
            f"{count}{since}",
            replace_url(pool, state.next),
            gettext("Replace it"),
        )
    if state.grows:
        return PlanProgress(
            plan,
            state,
            gettext("All disks are larger now."),
            gettext("Let {name} use them completely. {count}").format(name=pool.name, count=count),
            act_url(pool, state.grows, "grow"),
            gettext("Use them whole"),
        )
    return PlanProgress(
        plan,
        state,
        gettext("All disks of the plan are replaced."),
        gettext("{count} Larder closes it in a minute.").format(count=count),
    )


def growth_url(pool: Pool) -> str:
    return reverse("pool_growth", args=[str(pool.guid)])
