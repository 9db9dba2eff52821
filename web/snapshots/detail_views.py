"""Pages of one snapshot: its details and the actions on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from appliance.backups.copies import is_copy
from appliance.datasets.rollback import RollBack
from appliance.errors import Refused
from appliance.facts.box import Pool
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.operation import Operation, kind_of
from appliance.snapshots.bookmarks import BookmarkSnapshot
from appliance.snapshots.hold_clone import CloneSnapshot, HoldSnapshot, ReleaseSnapshot, RenameSnapshot
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.inventory.fact_row import first_fact
from web.inventory.models import PoolRow
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons
from web.snapshots import diff
from web.snapshots.diff import Changes
from web.translation import lazy_text

SECONDS_FOR_FILES = 10  # that a user waits for the list of files that a rollback changes
FILES = 20  # that are listed
PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


class HoldForm(forms.Form):
    why = forms.CharField(
        label=lazy_text("Reason for the protection"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=lazy_text("It is shown with your name to everyone who manages this box."),
    )


class RenameSnapshotForm(forms.Form):
    to = forms.CharField(label=lazy_text("New name"), max_length=60, strip=False, widget=forms.TextInput(attrs=PLAIN))


class CloneForm(forms.Form):
    name = forms.CharField(
        label=lazy_text("Name of the new folder"), max_length=60, strip=False, widget=forms.TextInput(attrs=PLAIN)
    )


class CloneVolumeForm(forms.Form):
    name = forms.CharField(
        label=lazy_text("Name of the new volume"), max_length=60, strip=False, widget=forms.TextInput(attrs=PLAIN)
    )


class ReleaseForm(forms.Form):
    """An action that asks for nothing."""


class BookmarkForm(forms.Form):
    name = forms.CharField(
        label=lazy_text("Name of the bookmark"), max_length=50, strip=False, widget=forms.TextInput(attrs=PLAIN)
    )


class RollBackForm(forms.Form):
    way_back = forms.BooleanField(
        label=lazy_text("Take a checkpoint of the pool first"),
        required=False,
        help_text=lazy_text(
            "It lets you undo the rollback by putting the whole pool back. Discard it when all is well."
        ),
    )


class Act(msgspec.Struct, frozen=True):
    """An action on a snapshot: its form, its operation, its button, and what it means."""

    form: type[forms.Form]
    operation: type[Operation]
    title: str
    meaning: str


ACTS = {
    "hold": Act(
        HoldForm, HoldSnapshot, lazy_text("Protect"), lazy_text("It cannot be destroyed until it is released.")
    ),
    "release": Act(
        ReleaseForm,
        ReleaseSnapshot,
        lazy_text("Release"),
        lazy_text("All of its protection is removed. The job names each reason, and who gave it."),
    ),
    "rename": Act(
        RenameSnapshotForm,
        RenameSnapshot,
        lazy_text("Rename"),
        lazy_text("Windows shows a snapshot among the previous versions only if its name contains the date and time."),
    ),
    "clone": Act(
        CloneForm,
        CloneSnapshot,
        lazy_text("Make a folder from it"),
        lazy_text("The new folder starts with these files and can be changed."),
    ),
    "bookmark": Act(
        BookmarkForm,
        BookmarkSnapshot,
        lazy_text("Bookmark"),
        lazy_text(
            "It marks the moment without the files, so that a backup can continue from it after the snapshot is gone."
        ),
    ),
}


CLONE_VOLUME = Act(
    CloneVolumeForm,
    CloneSnapshot,
    lazy_text("Make a volume from it"),
    lazy_text("The new volume starts with this content and can be changed."),
)


def acts_on(dataset: Dataset | None) -> dict[str, Act]:
    """The actions on a snapshot of this dataset, in the words for its kind; None: nothing is known of it."""
    return {**ACTS, "clone": CLONE_VOLUME} if is_volume(dataset) else ACTS


def row_of(key: str, guid: str) -> SnapshotRow:
    return get_object_or_404(SnapshotRow, dataset_key=key, guid=guid)


def find_dataset(key: str) -> Dataset | None:
    found: Dataset | None = first_fact(DatasetRow.objects.filter(key=key))
    return found


def is_volume(dataset: Dataset | None) -> bool:
    """Whether a dataset is a volume: a disk instead of files."""
    return dataset is not None and dataset.kind == "volume"


def is_clonable(dataset: Dataset | None) -> bool:
    """Whether something can be made from its snapshots: not of what belongs to the copies of backups."""
    return dataset is None or parse_copy_mark(dataset.copy_of) is None


def gives_files_back(dataset: Dataset | None) -> bool:
    """Whether single files can be restored from its snapshots: those of a copy go only into an original on this box."""
    mark = parse_copy_mark(dataset.copy_of) if dataset else None
    return not is_volume(dataset) and (mark is None or DatasetRow.objects.filter(key=str(mark.guid)).exists())


@require_http_methods(["GET"])
def show_snapshot(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """The details of a snapshot."""
    row, dataset = row_of(key, guid), find_dataset(key)
    clonable, volume = is_clonable(dataset), is_volume(dataset)
    hidden = {*(() if row.holds else ("release",)), *(() if clonable else ("clone",))}
    acts = [(name, act.title) for name, act in acts_on(dataset).items() if name not in hidden]
    kinds = ["roll-back", "restore-from-snapshot", *(kind_of(act.operation) for act in ACTS.values())]
    latest = Job.objects.filter(subject=row.dataset, kind__in=kinds)
    context = {"row": row, "key": key, "acts": acts, "volume": volume, "clonable": clonable}
    context["files"] = gives_files_back(dataset)
    context |= {"latest": latest.defer("plan", "log").first()}
    return render(request, "snapshots/detail.html", context)


@require_http_methods(["GET", "POST"])
def run_act(request: HttpRequest, key: str, guid: str, act: str) -> HttpResponse:
    """The form of an action, then its job without a review: each of them can be undone."""
    if act not in ACTS:
        raise Http404
    row, chosen = row_of(key, guid), acts_on(find_dataset(key))[act]
    form = chosen.form(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        more: dict[str, Any] = dict(form.cleaned_data)
        if act == "hold":
            more["who"] = request.user.get_username()

        def made() -> Operation:
            return chosen.operation(snapshot=row.name, guid=int(row.guid), **more)

        if response := start_or_review(form, made, request, back=reverse("snapshot", args=[key, guid])):
            return response
    context = {"row": row, "key": key, "form": form, "title": chosen.title, "meaning": chosen.meaning}
    return render(request, "snapshots/act.html", context, status=400 if form.is_bound else 200)


@require_GET
def roll_back(request: HttpRequest, key: str, guid: str) -> HttpResponse:
    """Ask whether to take a checkpoint first, then review what is lost."""
    row = row_of(key, guid)
    pool: Pool | None = first_fact(PoolRow.objects.filter(name=row.dataset.split("/", 1)[0]))
    possible = bool(pool and pool.checkpoint is None)
    form = RollBackForm(request.GET if "answered" in request.GET else None, initial={"way_back": possible})
    if form.is_bound and form.is_valid():
        try:
            operation = RollBack(snapshot=row.name, guid=int(row.guid), way_back=form.cleaned_data["way_back"])
            return confirm.review(request, operation, back=reverse("roll_back", args=[key, guid]))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    dataset = find_dataset(key)
    volume = is_volume(dataset)
    undone = Changes() if volume else diff.changes_between(row, seconds=SECONDS_FOR_FILES)
    context = {"row": row, "key": key, "form": form, "possible": possible, "volume": volume, "undone": undone}
    context |= {"clonable": is_clonable(dataset), "files": gives_files_back(dataset), "first": undone.changes[:FILES]}
    context["copied"] = dataset is not None and is_copy(dataset)
    return render(request, "snapshots/roll_back.html", context, status=400 if form.is_bound else 200)


def start_or_add_errors(form: forms.Form, made: Callable[[], Operation], request: HttpRequest) -> Job | None:
    """Start the job, or add the reasons for a refusal to the form."""
    try:
        return confirm.start_without_review(made(), user=request.user.get_username())
    except Refused as refusal:
        add_reasons(form, refusal.reasons)
        return None


def start_or_review(
    form: forms.Form, made: Callable[[], Operation], request: HttpRequest, *, back: str
) -> HttpResponse | None:
    """The page of the job or its review, or None with the reasons for a refusal added to the form."""
    try:
        return confirm.start_or_review(request, made(), back=back)
    except Refused as refusal:
        add_reasons(form, refusal.reasons)
        return None
