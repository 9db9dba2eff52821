"""Time travel: what a snapshot holds, the versions of a file, a file itself, and having it back."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from typing import IO, Any

from django import forms
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET, require_http_methods

from appliance.snapshots.browse.restore import RestoreFromSnapshot
from web import agent
from web.inventory.models import SnapshotRow
from web.snapshots import diff, file_preview
from web.snapshots.agent_queries import SECONDS, ask_agent
from web.snapshots.browse_path import BrowsePath, file_time, readable_text, way_of
from web.snapshots.detail_views import row_of, start_or_add_errors
from web.snapshots.views import dataset_of

BLOCK = 256 * 1024
LATER = 100  # snapshots to compare with
# A download holds one of the few threads that serve pages, for as long as the other side takes.
DOWNLOADS = threading.BoundedSemaphore(2)
OWN_POLICY = "default-src 'none'; sandbox"  # whatever a file holds, it runs nowhere and loads nothing


def adjacent_snapshots(row: SnapshotRow) -> dict[str, SnapshotRow | None]:
    """The snapshots before and after this one. Two queries."""
    own = SnapshotRow.objects.filter(dataset_key=row.dataset_key)
    return {
        "older": own.filter(created__lt=row.created).order_by("-created", "-id").first(),
        "newer": own.filter(created__gt=row.created).order_by("created", "id").first(),
    }


@require_GET
def browse_folder(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """A folder of a snapshot, a page of it."""
    row, way, after = row_of(key, guid), way_of(request), request.GET.get("after", "")[:1000]
    asked = {"verb": "list-folder", "snapshot": row.name, "path": way.path, "after": after}
    found, trouble = ask_agent(row.dataset, lambda: agent.last(asked, silence=SECONDS)["facts"])
    entries = [
        {**entry, "words": readable_text(entry["name"]), "path": way.to(entry["name"]), "at": file_time(entry["mtime"])}
        for entry in (found or {}).get("entries", ())
    ]
    context = {"row": row, "key": key, "way": way, "found": found, "entries": entries, "trouble": trouble}
    return render(request, "snapshots/files.html", {**context, "after": after, **adjacent_snapshots(row)})


@require_GET
def show_file(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """One file of a snapshot: what it is, a look at it, and what can be done with it."""
    row, way = row_of(key, guid), way_of(request)
    found, trouble = ask_agent(row.dataset, lambda: open_snapshot_file(row, way))
    look = None
    if found:
        facts, stream = found
        with stream:
            try:
                look = file_preview.preview_of(stream, int(facts["size"]))
            except OSError as error:
                trouble = f"It could not be read: {error.strerror}."
    context = {"row": row, "key": key, "way": way, "look": look, "trouble": trouble}
    if found:
        context |= {"size": int(found[0]["size"]), "at": file_time(found[0]["mtime"])}
    return render(request, "snapshots/file.html", {**context, **adjacent_snapshots(row)})


def open_snapshot_file(row: SnapshotRow, way: BrowsePath) -> tuple[dict[str, Any], IO[bytes]]:
    """A file of a snapshot, from the agent, which opened it. Raises Refused, Failed."""
    asked = {"verb": "open-file", "snapshot": row.name, "path": way.path}
    facts, handle = agent.open_file(asked, silence=SECONDS)
    return facts, os.fdopen(handle, "rb")


@require_GET
def serve_content(request: HttpRequest, key: str, guid: str) -> HttpResponseBase:
    """The file itself: a picture to look at, or anything as a download. It never runs in the browser."""
    row, way = row_of(key, guid), way_of(request)
    if not DOWNLOADS.acquire(blocking=False):
        return trouble_page(request, row, way, "Two files are being fetched already. Wait until one of them has ended.")
    with ExitStack() as held:
        held.callback(DOWNLOADS.release)
        found, trouble = ask_agent(row.dataset, lambda: open_snapshot_file(row, way))
        if found is None:
            return trouble_page(request, row, way, trouble)
        facts, stream = found
        held.enter_context(stream)
        try:
            kind = file_preview.picture_of(stream) if "look" in request.GET else ""
        except OSError as error:  # a block whose checksum is wrong
            return trouble_page(request, row, way, f"The file could not be read: {error.strerror}.")
        fetched = Fetched(stream)
        response = FileResponse(fetched, content_type=kind or "application/octet-stream")
        response.block_size = BLOCK
        response["Content-Length"] = str(int(facts["size"]))
        response["Content-Disposition"] = content_disposition_header(not kind, way.name) or "attachment"
        response["Content-Security-Policy"] = OWN_POLICY
        response["Cache-Control"] = "private, no-store"
        response["X-Accel-Buffering"] = "no"  # nginx would write it to the system's disk
        fetched.held = held.pop_all()  # from here on the response lets go, when it is closed
        return response


class Fetched:
    """A file on its way to a browser; closed, it makes room for another."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.held = stream, ExitStack()

    def read(self, size: int = -1) -> bytes:
        return self.stream.read(size)

    def close(self) -> None:
        self.held.close()


def trouble_page(request: HttpRequest, row: SnapshotRow, way: BrowsePath, trouble: str) -> HttpResponse:
    context = {"row": row, "key": row.dataset_key, "way": way, "trouble": trouble, **adjacent_snapshots(row)}
    return render(request, "snapshots/file.html", context, status=409)


@require_GET
def list_versions(request: HttpRequest, key: str) -> HttpResponse:
    """The time line of one file or folder: only the versions that differ."""
    dataset, way = dataset_of(key), way_of(request)
    asked = {"verb": "read-versions", "dataset": dataset.name, "path": way.path}
    found, trouble = ask_agent(dataset.name, lambda: agent.last(asked, silence=SECONDS)["facts"])
    listed = (found or {}).get("versions", ())
    created = dict(
        SnapshotRow.objects.filter(dataset_key=key, guid__in=[one["guid"] for one in listed[:500]]).values_list("guid", "created")
    )  # fmt: skip
    lines = [{**one, "at": file_time(one["mtime"]), "taken": created.get(one["guid"])} for one in listed[:500]]
    context = {"dataset": dataset, "key": key, "way": way, "found": found, "lines": lines, "trouble": trouble}
    return render(request, "snapshots/versions.html", context)


class RestorePlaceForm(forms.Form):
    place = forms.ChoiceField(
        label="Where",
        choices=[
            ("beside", "Beside what is there now, with the snapshot's date in its name"),
            ("back", "In its own place. What is there now stays too, under a name that says it was replaced"),
        ],
        widget=forms.RadioSelect,
        initial="beside",
    )


@require_http_methods(["GET", "POST"])
def restore_entry(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """Have a file or folder back. Nothing is erased by it, so it begins without a review."""
    row, way = row_of(key, guid), way_of(request)
    form = RestorePlaceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():

        def made() -> RestoreFromSnapshot:
            return RestoreFromSnapshot(
                snapshot=row.name, guid=int(row.guid), path=way.path, place=form.cleaned_data["place"]
            )

        if job := start_or_add_errors(form, made, request):
            return redirect("job", pk=job.pk)
    context = {"row": row, "key": key, "way": way, "form": form}
    return render(request, "snapshots/restore.html", context, status=400 if form.is_bound else 200)


@require_GET
def show_difference(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """What changed from a snapshot to another, or until now."""
    row = row_of(key, guid)
    later = SnapshotRow.objects.filter(dataset_key=key, created__gt=row.created).order_by("created", "id")
    wanted = request.GET.get("until", "")
    until = later.filter(guid=wanted).first() if wanted else None
    found = diff.changes_between(row, until)
    context = {
        "row": row,
        "key": key,
        "until": until,
        "later": later[:LATER],
        "more": later.count() > LATER,
        "found": found,
    }
    return render(request, "snapshots/difference.html", context)
