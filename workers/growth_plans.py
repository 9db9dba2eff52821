"""Follow the plans to give pools larger disks: note each step that ZFS shows, close what is
done, remind of what stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from appliance.alerts.fault import Fault
from appliance.facts.box import Pool
from appliance.formatting import about_days, disk_size
from appliance.message import Message
from appliance.pools.growth_plan import PlanState, read_plan
from web.inventory.bays import Bay, KnownBays
from web.pools import growth_plans
from web.pools.models import GrowthPlan


def follow_plans(
    pools: Iterable[Pool], now: datetime, bays: dict[str, Bay] | None = None, homes: KnownBays | None = None
) -> Iterator[Fault]:
    """Update the open plans, and yield a fault for each that stands still. A pool that is not here is told as that.

    ``bays``, by their keys, and ``homes`` name the disks that came.
    """
    known = {str(pool.guid): pool for pool in pools}
    for plan in list(GrowthPlan.objects.filter(ended=None)):
        pool = known.get(plan.pool_guid)
        if pool is None or pool.state == "SUSPENDED":
            continue
        state = read_plan(pool, plan.guids, plan.size)
        places = growth_plans.note_places(plan, pool, bays or {}, homes, now)
        note_step(plan, state, now, places, working=bool(state.running or pool.rebuilding))
        if state.is_complete and not pool.rebuilding:
            growth_plans.end_plan(plan, Message("All {count} disks were replaced.", count=state.total), now)
            continue
        if now - plan.moved > growth_plans.STANDS:
            waits = about_days((now - plan.moved).days)
            left = Message(
                "{done} of {total} disks are replaced by ones of {size}.",
                done=state.done,
                total=state.total,
                size=disk_size(plan.size),
            )
            yield Fault(
                "growth.standing",
                str(pool.guid),
                Message("{name}: nothing has happened in its plan for {waits}.", name=pool.name, waits=waits),
                left,
                f"/pools/{pool.guid}/growth/",
            )


def note_step(plan: GrowthPlan, state: PlanState, now: datetime, places: list[str], *, working: bool) -> None:
    """Store how far the plan is, that it moves, and the fields of ``places``.
    A time that lies ahead was noted while the clock was wrong."""
    fields, stepped = [*places], state.done != plan.done or plan.moved > now
    if stepped or (working and (now - plan.moved).days >= 1):
        plan.done, plan.moved = state.done, now
        fields += ["done", "moved"]
    if fields:
        plan.save(update_fields=fields)
