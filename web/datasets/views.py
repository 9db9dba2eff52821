"""Folders (datasets): the list, one of them, making one, and its SMB switch."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance.errors import Refused
from appliance.facts import Dataset
from appliance.shares.permissions import said_of
from appliance.shares.smb import SetShare, ShareSetting, setting_of
from appliance.zfs.datasets import CreateDataset
from appliance.zfs.presets import PRESETS
from web import live
from web.datasets import care
from web.datasets.forms import FolderForm, ShareForm
from web.inventory.models import AccountRow, DatasetRow, ShareRow
from web.jobs import confirm
from web.jobs.models import Job

PAGE = 100


@dataclass(frozen=True)
class Folder:
    """A dataset with its share, and the job that is changing it, if any."""

    key: str
    dataset: Dataset
    share: ShareSetting | None
    job: Job | None
    served: bool = False

    @property
    def depth(self) -> int:
        return self.dataset.name.count("/")

    @property
    def short(self) -> str:
        return self.dataset.name.rsplit("/", 1)[-1]


def folders_of(rows: list[DatasetRow]) -> list[Folder]:
    """Rows with what is going on about them; two queries for all."""
    busy = {job.subject: job for job in Job.objects.filter(state__in=Job.OPEN, kind="SetShare").defer("plan", "log")}
    paths = {row.key: row.fact.path for row in ShareRow.objects.all()}
    return [folder_of(row, busy.get(row.name), paths) for row in rows]


def folder_of(row: DatasetRow, job: Job | None, paths: dict[str, str]) -> Folder:
    """A share is on when Samba's own file names it with this very folder, and the folder is there."""
    dataset, setting = row.fact, setting_of(row.fact)
    served = bool(setting and setting.smb and dataset.mounted and paths.get(setting.name.lower()) == dataset.mountpoint)
    return Folder(row.key, dataset, setting, job, served)


def filesystems() -> QuerySet[DatasetRow]:
    return DatasetRow.objects.filter(facts__contains='"kind":"filesystem"').order_by("name")


@require_GET
def folders(request: HttpRequest) -> HttpResponse:
    """Every folder, with its switch."""

    def build() -> dict[str, object]:
        page = Paginator(filesystems(), PAGE).get_page(request.GET.get("page"))
        found = folders_of(list(page))
        return {
            "page": page,
            "folders": found,
            "accounts": AccountRow.objects.exists(),
            "locked": any(one.dataset.locked for one in found),
        }

    return live.respond(request, "datasets/list.html", build)


@require_GET
def folder(request: HttpRequest, key: str) -> HttpResponse:
    """One folder: space, state, share, and how to reach it."""

    def build() -> dict[str, object]:
        row = get_object_or_404(DatasetRow, key=key)
        found = folders_of([row])[0]
        below = DatasetRow.objects.filter(name__startswith=f"{row.name}/").count()
        latest = Job.objects.filter(subject=row.name, kind="SetShare").defer("plan", "log").first()
        shown = {"folder": found, "dataset": found.dataset, "below": below, "latest": latest}
        return {**shown, "access": said_of(found.dataset), **care.context(row)}

    return live.respond(request, "datasets/folder.html", build)


def add_reasons(form: forms.Form, refusal: Refused) -> None:
    for reason in refusal.reasons:
        form.add_error(reason.field if reason.field in form.fields else None, reason.text)


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Make a folder; a small act, so without a review page unless it gets a key of its own."""
    parents = [row.name for row in filesystems()[:1000]]
    form = FolderForm(
        request.POST or None,
        parents=parents,
        initial={
            "preset": request.GET.get("preset", "general"),
            "parent": request.GET.get("parent", parents[0] if parents else ""),
        },
    )
    if request.method == "POST" and form.is_valid():
        try:
            operation = CreateDataset(**form.cleaned_data)
            if operation.key:
                return confirm.review(request, operation, back=request.get_full_path())
            job = confirm.start(operation, user=request.user.get_username())
            return redirect("job", pk=job.pk)
        except Refused as refusal:
            add_reasons(form, refusal)
    return render(
        request,
        "datasets/create.html",
        {"form": form, "parents": parents, "presets": PRESETS.values()},
        status=400 if form.is_bound else 200,
    )


@require_http_methods(["GET", "POST"])
def share(request: HttpRequest, key: str) -> HttpResponse:
    """Switch SMB on for a folder: under which name, for whom."""
    row = get_object_or_404(DatasetRow, key=key)
    dataset: Dataset = row.fact
    accounts = [account.name for account in AccountRow.objects.order_by("name")]
    now = setting_of(dataset)
    initial: dict[str, object] = {
        "name": now.name if now and now.smb else dataset.name.rsplit("/", 1)[-1],
        "users": list(now.users) if now and now.smb else accounts[:1],
    }
    form = ShareForm(request.POST or None, accounts=accounts, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            operation = SetShare(
                dataset=dataset.name, smb=True, name=form.cleaned_data["name"], users=tuple(form.cleaned_data["users"])
            )
            job = confirm.start(operation, user=request.user.get_username())
            return redirect("job", pk=job.pk)
        except Refused as refusal:
            add_reasons(form, refusal)
    return render(
        request,
        "datasets/share.html",
        {"form": form, "dataset": dataset, "key": key, "accounts": accounts},
        status=400 if form.is_bound else 200,
    )


@require_POST
def unshare(request: HttpRequest, key: str) -> HttpResponse:
    """Switch SMB off. Files stay, so no review; the switch can be moved back."""
    row = get_object_or_404(DatasetRow, key=key)
    setting = setting_of(row.fact)
    if setting is None or not setting.smb:
        return redirect("folder", key=key)
    try:
        confirm.start(SetShare(dataset=row.name, smb=False), user=request.user.get_username())
    except Refused as refusal:
        return render(
            request, "jobs/refused.html", {"reasons": refusal.reasons, "back": f"/folders/{key}/"}, status=409
        )
    return redirect("folder", key=key)
