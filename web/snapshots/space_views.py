"""Pages about the space that snapshots use, holds, and automatic snapshots."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from appliance.facts.datasets import Dataset
from appliance.snapshots import policy
from web import agent
from web.inventory import store
from web.inventory.dataset_models import DatasetRow, SnapshotReading, SnapshotRow
from web.inventory.fact_row import readable_rows
from web.snapshots import adoption, paging, policy_ledger, space
from web.snapshots.agent_queries import SECONDS, ask_agent, try_agent
from web.snapshots.views import dataset_of

PAGE = 100
LARGEST = 10
HELD_A_PAGE = 50


@require_GET
def space_of_dataset(request: HttpRequest, key: str) -> HttpResponse:
    """The space used by a folder's snapshots, by groups that could be destroyed, and the holds on them."""
    dataset, now = dataset_of(key), timezone.now()
    every = list(SnapshotRow.objects.filter(dataset_key=key).order_by("txg"))
    asked, held = space.build_question(every, key, now)
    ranges = [pair for _words, _count, pairs in asked for pair in pairs]
    question = {"verb": "read-space", "held": held, "ranges": ranges}
    found, problem = ask_agent(dataset.name, partial(ask_space, question)) if every else (None, "")
    alone = sum(row.used for row in every)
    context = {
        "dataset": dataset,
        "key": key,
        "count": len(every),
        "lines": list(space.space_lines(asked, found["ranges"])) if found else [],
        "holds": list(space.list_holds(every, found["holds"], now)) if found else [],
        "largest": sorted((row for row in every if row.used), key=lambda row: -row.used)[:LARGEST],
        "shared": max(dataset.used_by_snapshots - alone, 0),
        "problem": problem,
    }
    return render(request, "snapshots/space.html", context)


@require_GET
def space_by_folder(request: HttpRequest) -> HttpResponse:
    """A page of the folders whose snapshots use most space, and the sums of each pool."""
    after = request.GET.get("after", "")[:60]
    page, last = paging.page_by_number(SnapshotReading.objects.filter(used__gt=0), after, PAGE, "used", "dataset_key")
    datasets: dict[str, Dataset] = {
        row.key: fact
        for row, fact in readable_rows(DatasetRow.objects.filter(pk__in=[reading.dataset_key for reading in page]))
    }
    costs = policy_ledger.policy_costs(datasets.values())
    lines = [
        {
            "key": reading.dataset_key,
            "dataset": datasets[reading.dataset_key],
            "count": reading.count,
            "used": reading.used,
            "cost": costs.get(reading.dataset_key, policy_ledger.Cost()),
        }
        for reading in page
        if reading.dataset_key in datasets
    ]
    context = {"pools": list(space.pool_spaces()), "lines": lines, "after": after, "next": last}
    return render(request, "snapshots/space_by_folder.html", context)


@require_GET
def list_held(request: HttpRequest) -> HttpResponse:
    """The holds on snapshots of all folders, with who set them and why, and which may have been forgotten."""
    after, now = request.GET.get("after", ""), timezone.now()
    rows = SnapshotRow.objects.filter(holds__gt=0).order_by("created", "id")
    count = rows.count()
    found = list(paging.rows_after(rows, after, "created", down=False)[: HELD_A_PAGE + 1])
    page = found[:HELD_A_PAGE]
    stopped = store.stopped_pools()
    asked = [row.name for row in page if row.dataset.split("/", 1)[0] not in stopped]
    answer, problem = try_agent(partial(ask_space, {"verb": "read-space", "held": asked})) if asked else (None, "")
    if len(asked) < len(page) and not problem:
        problem = gettext("A pool has stopped because its disks do not answer. Its holds are not shown here.")
    holds = list(space.list_holds(page, answer["holds"] if answer else {}, now))
    context = {
        "count": count,
        "holds": holds,
        "stale": sum(hold.stale for hold in holds),
        "problem": problem,
        "after": after,
        "next": paging.page_token(page[-1], "created") if len(found) > HELD_A_PAGE else "",
    }
    return render(request, "snapshots/holds.html", context)


def ask_space(request: dict[str, Any]) -> Any:
    return agent.last(request, silence=SECONDS)["facts"]


@require_GET
def list_policies(request: HttpRequest) -> HttpResponse:
    """A page of all folders with the schedule that each follows: its own, or one from above."""
    after = request.GET.get("after", "")[:255]
    rows = list(DatasetRow.objects.filter(name__gt=after).order_by("name")[: PAGE + 1])
    readable = readable_rows(rows[:PAGE])
    page: list[Dataset] = [fact for _row, fact in readable]
    keys = [row.key for row, _fact in readable]
    counts = dict(SnapshotReading.objects.filter(pk__in=keys).values_list("dataset_key", "count"))
    costs = policy_ledger.policy_costs(page)
    unrecorded = adoption.count_unrecorded(keys)
    lines = [
        {
            "key": key,
            "dataset": dataset,
            "policy": policy.policy_of(dataset),
            "above": dataset.policy_from,
            "offered": policy.offered_policy(dataset),
            "count": counts.get(key, 0),
            "cost": costs.get(key, policy_ledger.Cost()),
            "unrecorded": unrecorded.get(key, 0),
        }
        for key, dataset in zip(keys, page, strict=True)
    ]
    last = page[-1].name if len(rows) > PAGE else ""
    return render(request, "snapshots/policies.html", {"lines": lines, "after": after, "next": last})
