"""How long a rebuild of a pool takes, by what is stored of earlier work on it and of its rehearsal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from appliance.facts.box import Pool
from appliance.facts.datasets import Dataset
from appliance.pools.rebuild_estimate import PastWork, RebuildEstimate, estimate_rebuild
from appliance.rehearsal.result import read_result
from appliance.zfs import vdev_tree
from web.inventory.box import Box
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.pools.models import WorkReport

MOST_REPORTS = 50


def past_work(pool: Pool, datasets: Iterable[Dataset]) -> list[PastWork]:
    """Finished work on the pool and the rehearsal of a rebuild, the newest first. One query."""
    kinds = ("resilver", "scrub", "expand")
    rows = WorkReport.objects.filter(pool_key=str(pool.guid), kind__in=kinds, outcome="finished").order_by("-ended")
    found: list[tuple[datetime, PastWork]] = [
        (row.ended, PastWork(row.kind, row.looked, (row.ended - row.started).total_seconds()))
        for row in rows[:MOST_REPORTS]
        if row.started and row.ended
    ]
    if result := read_result(pool, datasets):
        found.append((result.at, result.work))
    return [work for _at, work in sorted(found, key=lambda one: one[0], reverse=True)]


def is_rotational(pool: Pool, box: Box) -> bool:
    """Whether a disk of the pool has platters."""
    return vdev_tree.is_rotational(pool, (bay.disk for bay in box.bays))


def rebuild_estimate(pool: Pool, box: Box) -> RebuildEstimate:
    """How long the rebuild of one disk takes with what is in the pool now. Two queries."""
    past = past_work(pool, readable_facts(DatasetRow.objects.filter(name=pool.name)))
    return estimate_rebuild(pool, past, rotational=is_rotational(pool, box))
