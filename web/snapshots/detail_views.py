"""One snapshot: what it is, and what can be done to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from appliance.datasets.rollback import RollBack
from appliance.errors import Refused
from appliance.operation import Operation, kind_of
from appliance.snapshots.bookmarks import BookmarkSnapshot
from appliance.snapshots.hold_clone import CloneSnapshot, HoldSnapshot, ReleaseSnapshot, RenameSnapshot
from web.inventory.models import DatasetRow, PoolRow, SnapshotRow
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons
from web.snapshots import diff
from web.snapshots.diff import Changes

SECONDS_FOR_FILES = 10  # that a person waits for what rolling back does to the files
FILES = 20  # of them that are named
PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


class WhyForm(forms.Form):
    why = forms.CharField(
        label="Why has it to stay?",
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Whoever finds it later reads this, and your name.",
    )


class ToForm(forms.Form):
    to = forms.CharField(label="New name", max_length=60, strip=False, widget=forms.TextInput(attrs=PLAIN))


class SnapshotNameForm(forms.Form):
    name = forms.CharField(
        label="Name of the new folder", max_length=60, strip=False, widget=forms.TextInput(attrs=PLAIN)
    )


class NothingForm(forms.Form):
    """An act that asks nothing."""


class BookmarkForm(forms.Form):
    name = forms.CharField(
        label="Name of the bookmark", max_length=50, strip=False, widget=forms.TextInput(attrs=PLAIN)
    )


class RollBackForm(forms.Form):
    way_back = forms.BooleanField(
        label="Take a checkpoint of the pool first",
        required=False,
        help_text="It is the way back. Going back to it puts the whole pool back, so discard it when all is well.",
    )


ACTS: dict[str, tuple[type[forms.Form], type[Operation], str, str]] = {
    "hold": (WhyForm, HoldSnapshot, "Hold", "It cannot be destroyed until it is released."),
    "release": (NothingForm, ReleaseSnapshot, "Release", "Every hold of it is let go; the job names each, with who set it and why."),
    "rename": (ToForm, RenameSnapshot, "Rename", "Windows shows only those among the previous versions whose name is a moment."),
    "clone": (SnapshotNameForm, CloneSnapshot, "Make a folder from it", "A folder that begins as it was then, and can be written to."),
    "bookmark": (BookmarkForm, BookmarkSnapshot, "Bookmark", "It remembers the moment without the files, so that a backup can go on from it when the snapshot has gone."),
}  # fmt: skip


def row_of(key: str, guid: str) -> SnapshotRow:
    return get_object_or_404(SnapshotRow, dataset_key=key, guid=guid)


def is_volume(key: str) -> bool:
    """Whether a dataset holds a disk rather than files."""
    return DatasetRow.objects.filter(key=key, facts__contains='"kind":"volume"').exists()


@require_http_methods(["GET"])
def show_snapshot(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """What a snapshot is and holds."""
    row = row_of(key, guid)
    acts = [(act, words[2]) for act, words in ACTS.items() if (act != "release" or row.holds)]
    kinds = ["roll-back", "restore-from-snapshot", *(kind_of(words[1]) for words in ACTS.values())]
    latest = Job.objects.filter(subject=row.dataset, kind__in=kinds)
    volume = is_volume(key)
    context = {"row": row, "key": key, "acts": acts, "volume": volume, "latest": latest.defer("plan", "log").first()}
    return render(request, "snapshots/detail.html", context)


@require_http_methods(["GET", "POST"])
def run_act(request: HttpRequest, key: str, guid: str, act: str) -> HttpResponse:
    """Ask what the act needs, then begin it: each of them can be undone."""
    if act not in ACTS:
        raise Http404
    row = row_of(key, guid)
    kind, operation, title, meaning = ACTS[act]
    form = kind(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        more: dict[str, Any] = dict(form.cleaned_data)
        if act == "hold":
            more["who"] = request.user.get_username()

        def made() -> Operation:
            return operation(snapshot=row.name, guid=int(row.guid), **more)

        if begun := start_or_review(form, made, request, back=reverse("snapshot", args=[key, guid])):
            return begun
    context = {"row": row, "key": key, "form": form, "title": title, "meaning": meaning}
    return render(request, "snapshots/act.html", context, status=400 if form.is_bound else 200)


@require_GET
def roll_back(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """Whether there shall be a way back, then the review with what is lost."""
    row = row_of(key, guid)
    pool = PoolRow.objects.filter(name=row.dataset.split("/", 1)[0]).first()
    possible = bool(pool and pool.fact.checkpoint is None)
    form = RollBackForm(request.GET if "answered" in request.GET else None, initial={"way_back": possible})
    if form.is_bound and form.is_valid():
        try:
            operation = RollBack(snapshot=row.name, guid=int(row.guid), way_back=form.cleaned_data["way_back"])
            return confirm.review(request, operation, back=reverse("roll_back", args=[key, guid]))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    volume = is_volume(key)
    undone = Changes() if volume else diff.changes_between(row, seconds=SECONDS_FOR_FILES)
    context = {"row": row, "key": key, "form": form, "possible": possible, "volume": volume, "undone": undone}
    context |= {"first": undone.changes[:FILES]}
    return render(request, "snapshots/roll_back.html", context, status=400 if form.is_bound else 200)


def start_or_add_errors(form: forms.Form, made: Callable[[], Operation], request: HttpRequest) -> Job | None:
    """The job, or its refusal at the fields."""
    try:
        return confirm.start_without_review(made(), user=request.user.get_username())
    except Refused as refusal:
        add_reasons(form, refusal.reasons)
        return None


def start_or_review(
    form: forms.Form, made: Callable[[], Operation], request: HttpRequest, *, back: str
) -> HttpResponse | None:
    """Where the job goes on, or its refusal at the fields."""
    try:
        return confirm.start_or_review(request, made(), back=back)
    except Refused as refusal:
        add_reasons(form, refusal.reasons)
        return None
