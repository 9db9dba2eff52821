"""Plans to replace the disks of a pool one after the other: begin one, and what it says on the pool's page."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from django.urls import reverse
from django.utils.translation import gettext

from appliance.facts.box import Pool, Vdev
from appliance.formatting import about_days, capitalize_opening, disk_size
from appliance.message import Message, shorten
from appliance.pools.growth_plan import PlanState, read_plan
from appliance.zfs import vdev_tree
from web.inventory.bays import bays_by_key, device_label, device_name, read_known_bays
from web.inventory.box import Box
from web.pools.models import GrowthPlan
from web.pools.topology import act_url, replace_url
from web.said import said_in
from web.translation import text_of

STANDS = timedelta(days=30)  # without a step: time for a gentle reminder


class PlanProgress(msgspec.Struct, frozen=True):
    """How far a plan is, in words, with the page of its next step."""

    plan: GrowthPlan
    state: PlanState
    headline: str
    text: str
    link: str = ""
    link_text: str = ""


def open_plan(key: str) -> GrowthPlan | None:
    """The open plan of the pool with that guid. One query."""
    return GrowthPlan.objects.filter(pool_guid=key, ended=None).first()


def begin_plan(pool: Pool, targets: tuple[int, ...], size: int, box: Box, user: str, now: datetime) -> GrowthPlan:
    """Begin to replace these disks by ones of ``size`` bytes; the plan that is open already, where there is one."""
    bays, homes = bays_by_key(box.bays), read_known_bays()
    labels = {device.guid: device_name(device, bays, homes) for device in pool.devices()}
    called = [[str(guid), labels.get(guid, Message("a disk"))] for guid in targets]
    plan, _made = GrowthPlan.objects.get_or_create(
        pool_guid=str(pool.guid),
        ended=None,
        defaults={
            "pool": pool.name,
            "size": size,
            "targets": called,
            "said": said_in(called),
            "moved": now,
            "begun": now,
            "begun_by": user,
        },
    )
    return plan


def end_plan(plan: GrowthPlan, outcome: str, now: datetime) -> None:
    """Close a plan. Twice is harmless."""
    said = plan.said | said_in(outcome)
    GrowthPlan.objects.filter(pk=plan.pk, ended=None).update(ended=now, outcome=shorten(outcome, 400), said=said)


def describe_plan(plan: GrowthPlan, pool: Pool, box: Box, now: datetime) -> PlanProgress:
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
