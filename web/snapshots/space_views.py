"""Where the space is, and which folders have snapshots taken by themselves."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from appliance import client
from appliance.dataset import Dataset
from appliance.zfs import policies
from web.inventory.models import DatasetRow, SnapshotReading, SnapshotRow
from web.snapshots import recorded, space
from web.snapshots.asking import SECONDS, told
from web.snapshots.views import dataset_of

PAGE = 100
LARGEST = 10


@require_GET
def of_dataset(request: HttpRequest, key: str) -> HttpResponse:
    """What the snapshots of a folder hold, by groups that could go, and who holds which."""
    dataset, now = dataset_of(key), timezone.now()
    every = list(SnapshotRow.objects.filter(dataset_key=key).order_by("txg"))
    asked, held = space.question(every, key, now)
    ranges = [pair for _words, _count, pairs in asked for pair in pairs]
    request_ = {"verb": "read-space", "held": held, "ranges": ranges}
    found, trouble = (
        told(dataset.name, lambda: client.last(request_, silence=SECONDS)["facts"]) if every else (None, "")
    )
    alone = sum(row.used for row in every)
    context = {
        "dataset": dataset,
        "key": key,
        "count": len(every),
        "lines": list(space.lines(asked, found["ranges"])) if found else [],
        "holds": list(space.holds(every, found["holds"], now)) if found else [],
        "largest": sorted((row for row in every if row.used), key=lambda row: -row.used)[:LARGEST],
        "shared": max(dataset.used_by_snapshots - alone, 0),
        "trouble": trouble,
    }
    return render(request, "snapshots/space.html", context)


@require_GET
def by_themselves(request: HttpRequest) -> HttpResponse:
    """Every folder and the policy that is in force for it: its own, or one from above. A page of them."""
    after = request.GET.get("after", "")[:255]
    rows = list(DatasetRow.objects.filter(name__gt=after).order_by("name")[: PAGE + 1])
    page: list[Dataset] = [row.fact for row in rows[:PAGE]]
    keys = [row.key for row in rows[:PAGE]]
    counts = dict(SnapshotReading.objects.filter(pk__in=keys).values_list("dataset_key", "count"))
    costs = recorded.costs(page)
    lines = [
        {
            "key": key,
            "dataset": dataset,
            "policy": policies.of(dataset),
            "above": dataset.policy_from,
            "offered": policies.offered(dataset),
            "count": counts.get(key, 0),
            "cost": costs.get(key, recorded.Cost()),
        }
        for key, dataset in zip(keys, page, strict=True)
    ]
    last = page[-1].name if len(rows) > PAGE else ""
    return render(request, "snapshots/policies.html", {"lines": lines, "after": after, "next": last})
