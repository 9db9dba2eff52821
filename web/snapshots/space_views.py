"""Where the space is, and which folders have snapshots taken by themselves."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from appliance import client
from appliance.facts import Dataset
from appliance.zfs import policies
from web.inventory.models import DatasetRow, SnapshotReading, SnapshotRow
from web.snapshots import space
from web.snapshots.content_views import SECONDS, told
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
    request_ = {"verb": "read-space", "dataset": dataset.name, "held": held, "ranges": ranges}
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
    """Every folder and the policy that is in force for it: its own, or one from above. Three queries."""
    after = request.GET.get("after", "")[:255]
    every: list[tuple[str, Dataset]] = [(row.key, row.fact) for row in DatasetRow.objects.order_by("name")]
    own = {dataset.name for _key, dataset in every if dataset.policy_source == "local"}
    counts = dict(SnapshotReading.objects.values_list("dataset_key", "count"))
    page = [one for one in every if one[1].name > after][: PAGE + 1]
    lines = [
        {
            "key": key,
            "dataset": dataset,
            "depth": dataset.name.count("/"),
            "policy": policies.of(dataset),
            "above": source_of(dataset, own) if dataset.policy_source == "inherited" else "",
            "offered": policies.parse(dataset.policy) if dataset.policy_source == "received" else None,
            "count": counts.get(key, 0),
        }
        for key, dataset in page[:PAGE]
    ]
    last = page[PAGE - 1][1].name if len(page) > PAGE else ""
    return render(request, "snapshots/policies.html", {"lines": lines, "after": after, "next": last})


def source_of(dataset: Dataset, own: set[str]) -> str:
    """The folder above whose policy it follows."""
    name = dataset.name
    while "/" in name:
        name = name.rpartition("/")[0]
        if name in own:
            return name
    return ""
