"""What deleting snapshots and old copies frees in a pool, from the rows and what the agent measures."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.facts.cleanup import Cleanup
from appliance.facts.datasets import Dataset
from appliance.snapshots import cleanup, space
from appliance.snapshots.cleanup import Known
from appliance.snapshots.space import Pair
from web import agent
from web.inventory.dataset_models import SnapshotRow
from web.snapshots.agent_queries import SECONDS_FOR_SPACE, ask_agent

MOST = 5000  # snapshots that are looked at beside one that cannot be destroyed


def read_cleanup(datasets: Sequence[Dataset], copies: Sequence[str]) -> Cleanup:
    """What is freed; ``datasets`` are all of a pool, parents first. One query, and two more where a snapshot stays."""
    return cleanup.measure_cleanup(datasets, copies, read_known(datasets)) if datasets else Cleanup()


def read_known(datasets: Sequence[Dataset]) -> Known:
    """What is known of the datasets with a snapshot that cannot be destroyed.
    Of all others their own figure is enough."""
    names = {one.name for one in datasets}
    held = SnapshotRow.objects.filter(holds__gt=0).values_list("dataset", flat=True).distinct()
    blocked = frozenset({*held, *(one.origin.partition("@")[0] for one in datasets if one.origin)} & names)
    if not blocked:
        return Known()
    rows = SnapshotRow.objects.filter(dataset__in=blocked)
    if rows.count() > MOST:
        return Known(blocked)
    snapshots = tuple(row.fact for row in rows.order_by("dataset", "txg"))
    pairs = space.run_ends(cleanup.destroyable_runs(snapshots))
    return Known(blocked, snapshots, space.build_spans(pairs, measure(datasets[0].pool, pairs)))


def measure(pool: str, pairs: Sequence[Pair]) -> Sequence[int | None]:
    """The bytes that each run holds; none where ZFS does not answer in time.
    The rest of the page does not depend on it."""
    if not pairs:
        return ()
    question = {"verb": "read-space", "ranges": pairs}
    try:
        answer, _problem = ask_agent(pool, lambda: agent.last(question, silence=SECONDS_FOR_SPACE)["facts"])
    except agent.AgentBusy:
        return ()
    found: Sequence[int | None] = answer["ranges"] if answer else ()
    return found
