"""The one state of a disk that pages show: the worst of its place in a pool, what its SMART figures say, and its heat.

Heat is one of the reasons of the SMART verdict (``appliance/disks/health.py``), which alerts use too.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext

from appliance.pools.health import Health
from web.inventory.models import DiskRow
from web.translation import lazy_text

VERDICT_STATES: dict[str, Health] = {"healthy": "healthy", "watch": "attention", "failing": "failed"}
VERDICT_WORDS = {
    "healthy": lazy_text("healthy"),
    "watch": lazy_text("needs attention"),
    "failing": lazy_text("failing"),
    "": lazy_text("not asked yet"),
}
WORST_FIRST: tuple[Health, ...] = ("failed", "attention")
State = tuple[Health, str]  # and its word


def verdict_state(row: DiskRow) -> State:
    """What its own figures say, as last known while it sleeps."""
    word = VERDICT_WORDS.get(row.verdict, row.verdict)
    if row.verdict == "watch" and row.reasons and all(is_heat(reason) for reason in row.reasons):
        word = gettext("too warm")
    return VERDICT_STATES.get(row.verdict, "unknown"), word


def is_heat(reason: Sequence[object]) -> bool:
    """Whether a stored reason, ``[state, text, count, value, since]``, is about the temperature."""
    return len(reason) > 2 and reason[2] == "temperature"


def disk_state(row: DiskRow, in_use: State | None = None) -> State:
    """The worst of what its pool and its own figures say; the pool's where both are as bad. A disk that sleeps is
    asleep unless something is wrong. ``in_use``: state and word of its place; None for its health alone."""
    own = verdict_state(row)
    worst = pick_worst(in_use, own) if in_use else own
    return ("asleep", gettext("asleep")) if row.asleep and worst[0] not in WORST_FIRST else worst


def pick_worst(first: State, second: State) -> State:
    """Whichever of the two says that something is wrong, the worse; else, or where both are as bad, the first."""
    return next((state for bad in WORST_FIRST for state in (first, second) if state[0] == bad), first)
