"""Restore files: choose a folder, then a snapshot from its time line, or search all its snapshots by name."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from appliance.facts.datasets import Dataset
from appliance.snapshots.browse import listing
from appliance.snapshots.browse.search import MOST
from web import agent
from web.inventory.dataset_models import DatasetRow, SnapshotReading, SnapshotRow
from web.inventory.fact_row import readable_rows
from web.snapshots import paging
from web.snapshots.agent_queries import SECONDS, ask_agent
from web.snapshots.browse_path import file_time, readable_text
from web.snapshots.views import dataset_of

FOLDERS = 50  # that a page shows
PAGE = "snapshots/restore_files.html"


@require_GET
def choose_folder(request: HttpRequest) -> HttpResponse:
    """The folders that have snapshots."""
    text = request.GET.get("q", "").strip()[:255]
    rows = SnapshotReading.objects.filter(count__gt=0).order_by("dataset")
    page = Paginator(rows.filter(dataset__icontains=text) if text else rows, FOLDERS).get_page(request.GET.get("page"))
    datasets = {
        row.key: fact
        for row, fact in readable_rows(DatasetRow.objects.filter(key__in=[row.dataset_key for row in page]))
    }
    folders = [
        {"key": row.dataset_key, "name": row.dataset, "count": row.count, "locked": datasets[row.dataset_key].locked}
        for row in page
        if row.dataset_key in datasets and datasets[row.dataset_key].kind == "filesystem"
    ]
    return render(request, "snapshots/restore_choose.html", {"page": page, "folders": folders, "q": text})


@require_GET
def restore_files(request: HttpRequest, key: str) -> HttpResponse:
    """The time line of a folder's snapshots, or what a search in them has found so far."""
    dataset, text = dataset_of(key), request.GET.get("q", "").strip()[:255]
    context: dict[str, Any] = {"dataset": dataset, "key": key, "q": text}
    if dataset.kind != "filesystem":
        context["problem"] = listing.is_volume(dataset.name).message
    elif dataset.locked:
        context["problem"] = listing.is_locked(dataset.name).message
    elif text:
        context |= search_on(request, key, dataset, text)
        if request.htmx:  # type: ignore[attr-defined]  # set by its middleware
            return render(request, f"{PAGE}#hits", context)
    if not text:
        asked = paging.Asked.from_query(request.GET, key)
        context |= {"snapshots": paging.snapshot_page(asked), "asked": asked}
    return render(request, PAGE, context)


def search_on(request: HttpRequest, key: str, dataset: Dataset, text: str) -> dict[str, Any]:
    """The next piece of a search: what was found, and the address of the piece after it."""
    shown = min(int(number), MOST) if (number := request.GET.get("shown", "")).isdecimal() and len(number) < 9 else 0
    asked = {
        "verb": "search-names",
        "dataset": dataset.name,
        "text": text,
        "after": request.GET.get("after", "")[:20],
        "room": max(1, MOST - shown),
    }
    found, problem = ask_agent(dataset.name, lambda: agent.last(asked, silence=SECONDS)["facts"])
    if not found:
        return {"problem": problem}
    guids = {hit["guid"] for hit in found["found"]}
    taken = dict(SnapshotRow.objects.filter(dataset_key=key, guid__in=guids).values_list("guid", "created"))
    hits = [
        {
            **hit["entry"],
            "path": hit["entry"]["name"],
            "words": readable_text(hit["entry"]["name"]),
            "at": file_time(hit["entry"]["mtime"]),
            "guid": hit["guid"],
            "taken": taken.get(hit["guid"]),
        }
        for hit in found["found"]
    ]
    shown += len(hits)
    more = urlencode({"q": text, "after": found["after"], "shown": shown}) if found["after"] else ""
    return {"found": found, "hits": hits, "shown": shown, "more": more}
