"""Questions to the agent about snapshots, which only root can answer. Only pages ask them, while a user waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from appliance.errors import Failed, Refused, explain_error
from appliance.facts.box import Facts
from appliance.facts.pool_reasons import stopped_pool
from appliance.snapshots import space
from appliance.snapshots.destroy import MOST, DestroySnapshots
from web import agent
from web.inventory import store
from web.inventory.dataset_models import SnapshotRow

SECONDS = 60
SECONDS_FOR_SPACE = 20


def ask_agent(dataset: str, ask: Callable[[], Any]) -> tuple[Any, str]:
    """Ask the agent about a dataset. Returns the answer, and the problem as text if there is none."""
    pool = dataset.split("/", 1)[0]
    if pool in store.stopped_pools():
        return None, stopped_pool(pool).text
    return try_agent(ask)


def try_agent(ask: Callable[[], Any]) -> tuple[Any, str]:
    """Ask without checking whether the pool responds."""
    try:
        return ask(), ""
    except (Refused, Failed) as error:
        return None, explain_error(error)


def measure_facts(operation: DestroySnapshots) -> Facts:
    """The inventory's facts with the measured space, or without it if ZFS does not answer in time."""
    facts = store.facts_for(operation)
    pairs = space.run_ends(operation.find_runs(facts))
    if not pairs:
        return facts
    asked = {"verb": "read-space", "ranges": pairs}
    answer, _problem = ask_agent(operation.subject, lambda: agent.last(asked, silence=SECONDS_FOR_SPACE)["facts"])
    return replace(facts, spans=space.build_spans(pairs, answer["ranges"])) if answer else facts


def freed_by_pruning(rows: Sequence[SnapshotRow]) -> space.Freed:
    """The space freed when a schedule destroys these; only their unique space if they are in too many folders."""
    if len(rows) > MOST or len({row.dataset_key for row in rows}) > space.MOST_RANGES:
        return space.Freed(sum(row.used for row in rows), exact=False)
    operation = DestroySnapshots.for_pairs((row.name, int(row.guid)) for row in rows)
    return operation.freed_space(measure_facts(operation))
