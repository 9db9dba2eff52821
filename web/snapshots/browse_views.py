"""Pages that browse snapshots: folders, files, versions of a file, differences, restoring."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from typing import IO, Any

from django import forms
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from appliance.backups.copies import is_copy
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.snapshots.browse.restore import RestoreFromSnapshot, original_gone
from web import agent
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.snapshots import diff, file_preview
from web.snapshots.agent_queries import SECONDS, ask_agent
from web.snapshots.browse_path import BrowsePath, file_time, path_of, readable_text
from web.snapshots.detail_views import row_of, start_or_add_errors
from web.snapshots.views import dataset_of
from web.translation import lazy_text, reason_text

BLOCK = 256 * 1024
VERSIONS = 500  # that a page shows
LATER = 100  # snapshots to compare with
# A download occupies one of the few threads that serve pages for as long as the client takes.
DOWNLOADS = threading.BoundedSemaphore(2)
OWN_POLICY = "default-src 'none'; sandbox"  # nothing in a file may run or load anything


def adjacent_snapshots(row: SnapshotRow) -> dict[str, SnapshotRow | None]:
    """The snapshots before and after this one. Two queries."""
    own = SnapshotRow.objects.filter(dataset_key=row.dataset_key)
    return {
        "older": own.filter(created__lt=row.created).order_by("-created", "-id").first(),
        "newer": own.filter(created__gt=row.created).order_by("created", "id").first(),
    }


@require_GET
def browse_folder(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """A page of the entries of a snapshot's folder."""
    row, way, after = row_of(key, guid), path_of(request), request.GET.get("after", "")[:1000]
    asked = {"verb": "list-folder", "snapshot": row.name, "path": way.path, "after": after}
    found, problem = ask_agent(row.dataset, lambda: agent.last(asked, silence=SECONDS)["facts"])
    entries = [
        {
            **entry,
            "words": readable_text(entry["name"]),
            "path": way.child_path(entry["name"]),
            "at": file_time(entry["mtime"]),
        }
        for entry in (found or {}).get("entries", ())
    ]
    context = {"row": row, "key": key, "way": way, "found": found, "entries": entries, "problem": problem}
    return render(request, "snapshots/files.html", {**context, "after": after, **adjacent_snapshots(row)})


@require_GET
def show_file(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """One file of a snapshot: its details, a preview, and the actions on it. Without a path, the folder itself."""
    row, way = row_of(key, guid), path_of(request)
    if not way.path:
        return redirect("snapshot_files", key=key, guid=guid)
    found, problem = ask_agent(row.dataset, lambda: open_snapshot_file(row, way))
    look = None
    if found:
        facts, stream = found
        with stream:
            try:
                look = file_preview.preview_of(stream, int(facts["size"]))
            except OSError as error:
                problem = gettext("It could not be read: {strerror}.").format(strerror=error.strerror)
    context = {"row": row, "key": key, "way": way, "look": look, "problem": problem}
    if found:
        context |= {"size": int(found[0]["size"]), "at": file_time(found[0]["mtime"])}
    return render(request, "snapshots/file.html", {**context, **adjacent_snapshots(row)})


def open_snapshot_file(row: SnapshotRow, way: BrowsePath) -> tuple[dict[str, Any], IO[bytes]]:
    """A file of a snapshot, opened by the agent. Raises Refused, Failed."""
    asked = {"verb": "open-file", "snapshot": row.name, "path": way.path}
    facts, handle = agent.open_file(asked, silence=SECONDS)
    return facts, os.fdopen(handle, "rb")


@require_GET
def serve_content(request: HttpRequest, key: str, guid: str) -> HttpResponseBase:
    """The content of a file: a picture to display, or a download. It never runs in the browser."""
    row, way = row_of(key, guid), path_of(request)
    if not DOWNLOADS.acquire(blocking=False):
        return problem_page(
            request, row, way, gettext("Two files are already being downloaded. Wait until one of them has finished.")
        )
    with ExitStack() as held:
        held.callback(DOWNLOADS.release)
        found, problem = ask_agent(row.dataset, lambda: open_snapshot_file(row, way))
        if found is None:
            return problem_page(request, row, way, problem)
        facts, stream = found
        held.enter_context(stream)
        try:
            kind = file_preview.picture_of(stream) if "look" in request.GET else ""
        except OSError as error:  # such as a block with a wrong checksum
            return problem_page(
                request, row, way, gettext("The file could not be read: {strerror}.").format(strerror=error.strerror)
            )
        download = Download(stream)
        response = FileResponse(download, content_type=kind or "application/octet-stream")
        response.block_size = BLOCK
        response["Content-Length"] = str(int(facts["size"]))
        response["Content-Disposition"] = content_disposition_header(not kind, way.name) or "attachment"
        response["Content-Security-Policy"] = OWN_POLICY
        response["Cache-Control"] = "private, no-store"
        response["X-Accel-Buffering"] = "no"  # else nginx would write it to the system's disk
        download.held = held.pop_all()  # from here on the response releases it when it is closed
        return response


class Download:
    """A file being sent to a browser. Closing it makes room for another download."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.held = stream, ExitStack()

    def read(self, size: int = -1) -> bytes:
        return self.stream.read(size)

    def close(self) -> None:
        self.held.close()


def problem_page(request: HttpRequest, row: SnapshotRow, way: BrowsePath, problem: str) -> HttpResponse:
    context = {"row": row, "key": row.dataset_key, "way": way, "problem": problem, **adjacent_snapshots(row)}
    return render(request, "snapshots/file.html", context, status=409)


@require_GET
def list_versions(request: HttpRequest, key: str) -> HttpResponse:
    """The timeline of a file or folder: only the versions that differ."""
    dataset, way = dataset_of(key), path_of(request)
    asked = {"verb": "read-versions", "dataset": dataset.name, "path": way.path}
    found, problem = ask_agent(dataset.name, lambda: agent.last(asked, silence=SECONDS)["facts"])
    listed = (found or {}).get("versions", ())[:VERSIONS]
    rows = SnapshotRow.objects.filter(dataset_key=key, guid__in=[version["guid"] for version in listed])
    created = dict(rows.values_list("guid", "created"))
    lines = [
        {**version, "at": file_time(version["mtime"]), "taken": created.get(version["guid"])} for version in listed
    ]
    context = {"dataset": dataset, "key": key, "way": way, "found": found, "lines": lines, "problem": problem}
    return render(request, "snapshots/versions.html", context)


class RestorePlaceForm(forms.Form):
    place = forms.ChoiceField(
        label=lazy_text("Where"),
        choices=[
            (
                "free",
                lazy_text(
                    "Where it was, if nothing is there now; else beside it, with the snapshot’s date in its name"
                ),
            ),
            ("beside", lazy_text("Beside what is there now, with the snapshot's date in its name")),
            ("back", lazy_text("In its own place. What is there now is kept under a name that says it was replaced")),
        ],
        widget=forms.RadioSelect,
        initial="free",
    )


def original_of(dataset: Dataset) -> str:
    """The folder that the dataset is a backup's copy of; empty where it is none, or its original is gone."""
    mark = parse_copy_mark(dataset.copy_of)
    found = DatasetRow.objects.filter(key=str(mark.guid)).first() if mark else None
    return found.name if found else ""


@require_http_methods(["GET", "POST"])
def restore_entry(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """Restore a file or folder. Nothing is erased by it, so there is no review."""
    row, way = row_of(key, guid), path_of(request)
    copy = dataset_of(key)
    into = original_of(copy)
    lost = parse_copy_mark(copy.copy_of) is not None and not into
    form = RestorePlaceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():

        def made() -> RestoreFromSnapshot:
            return RestoreFromSnapshot(
                snapshot=row.name, guid=int(row.guid), path=way.path, place=form.cleaned_data["place"], into=into
            )

        if job := start_or_add_errors(form, made, request):
            return redirect("job", pk=job.pk)
    context = {"row": row, "key": key, "way": way, "form": form, "into": into, "lost": lost, "whole": is_copy(copy)}
    context["problem"] = reason_text(original_gone(copy.name)) if lost and not form.errors else ""
    return render(request, "snapshots/restore.html", context, status=400 if form.is_bound else 200)


@require_GET
def show_difference(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """The changes from a snapshot to a later one, or until now."""
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
