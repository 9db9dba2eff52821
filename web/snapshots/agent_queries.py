"""What pages ask the agent about snapshots, because only root may know it. It is asked for a person who waits, never by a tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from appliance.errors import Failed, Refused, explain
from appliance.facts.box import Facts
from appliance.snapshots import space
from appliance.snapshots.destroy import MOST, DestroySnapshots
from web import agent
from web.inventory import store
from web.inventory.models import SnapshotRow

SECONDS = 60
SECONDS_FOR_SPACE = 20


def ask_agent(dataset: str, ask: Callable[[], Any]) -> tuple[Any, str]:
    """What the agent says, and what kept it from saying it."""
    pool = dataset.split("/", 1)[0]
    if pool in store.stopped_pools():
        return None, f"{pool} has stopped because its disks do not answer. Bring them back first."
    return try_agent(ask)


def try_agent(ask: Callable[[], Any]) -> tuple[Any, str]:
    """The same without a look at the pool."""
    try:
        return ask(), ""
    except (Refused, Failed) as error:
        return None, explain(error)


def measure_facts(operation: DestroySnapshots) -> Facts:
    """The inventory's facts with what would come back; without, where ZFS does not say it in time."""
    facts = store.facts_for(operation)
    pairs = space.run_ends(operation.find_runs(facts))
    if not pairs:
        return facts
    asked = {"verb": "read-space", "ranges": pairs}
    found, _trouble = ask_agent(operation.subject, lambda: agent.last(asked, silence=SECONDS_FOR_SPACE)["facts"])
    return replace(facts, spans=space.build_spans(pairs, found["ranges"])) if found else facts


def freed_by_pruning(rows: Sequence[SnapshotRow]) -> space.Freed:
    """What comes back when a policy destroys these; where they lie in too many folders, what each of them holds alone."""
    if len(rows) > MOST or len({row.dataset_key for row in rows}) > space.MOST_RANGES:
        return space.Freed(sum(row.used for row in rows), exact=False)
    operation = DestroySnapshots.for_pairs((row.name, int(row.guid)) for row in rows)
    return operation.freed_space(measure_facts(operation))
