"""Folders (datasets): the list, one folder, creating one."""

from __future__ import annotations

import msgspec
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_http_methods

from appliance.datasets.access_note import foreign_note, resolve_numbers, valid_note
from appliance.datasets.create import CreateDataset
from appliance.datasets.presets import PRESETS
from appliance.errors import Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from web import live
from web.backups import status
from web.datasets import actions
from web.datasets.forms import FolderForm
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts, readable_rows
from web.inventory.models import AccountRow, GroupRow
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons
from web.shares.box_address import BoxAddress, asker_first, read_box_address
from web.shares.switches import Switch, SwitchesState
from web.shares.volume_target import volume_context

PAGE = 40  # keeps a page of the list under 60 kB


class Folder(msgspec.Struct, frozen=True):
    """A dataset and its share switches."""

    key: str
    dataset: Dataset
    switches: tuple[Switch, ...]

    @property
    def depth(self) -> int:
        return self.dataset.name.count("/")

    def address_for(self, user_agent: str) -> str:
        """How the computer of that browser opens the folder; empty where it is not served, or by a command alone."""
        ways = asker_first([way for switch in self.switches for way in switch.ways], user_agent)
        return next((way.address for way in ways if way.is_address), "")

    @property
    def shared(self) -> tuple[Switch, ...]:
        """The switches that are on, should be, or are being turned."""
        return tuple(switch for switch in self.switches if switch.part or switch.job)


def build_folders(rows: list[DatasetRow], box: BoxAddress | None = None, *, failures: bool = False) -> list[Folder]:
    """Build folders from rows, with a few queries for all. ``box``: for the addresses of their shares;
    ``failures``: with how the last change of each switch went wrong."""
    state = SwitchesState.read(box, failures=failures)
    return [Folder(row.key, fact, state.switches(row.key, fact)) for row, fact in readable_rows(rows)]


def list_filesystems() -> QuerySet[DatasetRow]:
    return DatasetRow.objects.filter(type="filesystem").order_by("name")


@require_GET
def list_folders(request: HttpRequest) -> HttpResponse:
    """The list of all folders with their share switches."""

    def build() -> dict[str, object]:
        page = Paginator(list_filesystems(), PAGE).get_page(request.GET.get("page"))
        found = build_folders(list(page), failures=True)
        return {
            "page": page,
            "folders": found,
            "accounts": AccountRow.objects.exists(),
            "locked": actions.locked_roots().exists(),
            "only_pools": not page.has_other_pages() and not any(one.depth for one in found),
        }

    return live.respond(request, "datasets/list.html", build)


@require_GET
def show_folder(request: HttpRequest, key: str) -> HttpResponse:
    """The page of one folder: space, state, shares and users."""

    def build() -> dict[str, object]:
        row = get_object_or_404(DatasetRow, key=key)
        found = next(iter(build_folders([row], read_box_address(request), failures=True)), None)
        if found is None:  # it cannot be decoded; the list leaves it out too
            raise Http404
        below = DatasetRow.objects.filter(name__startswith=f"{row.name}/").count()
        latest = Job.objects.filter(subject=row.name, kind="set-target").defer("plan", "log").first()
        shown = {"folder": found, "dataset": found.dataset, "below": below, "latest": latest}
        shown["backups"] = status.backups_holding(found.dataset)
        if found.dataset.kind == "volume":
            shown |= volume_context(found.dataset, request)
        return {**shown, **access_context(found.dataset), **actions.folder_context(row)}

    return live.respond(request, "datasets/folder.html", build)


def access_context(dataset: Dataset) -> dict[str, object]:
    """Who may use a dataset. If its note is not valid here, also that note and whom the files let in by number."""
    if not dataset.access:
        return {"access": None}
    facts = Facts(
        accounts=tuple(readable_facts(AccountRow.objects.order_by("name"))),
        groups=tuple(readable_facts(GroupRow.objects.order_by("name"))),
    )
    elsewhere = foreign_note(dataset, facts)
    now = resolve_numbers(elsewhere, facts) if elsewhere else None
    return {"access": valid_note(dataset, facts), "elsewhere": elsewhere, "let_in_now": now}


@require_http_methods(["GET", "POST"])
def create_folder(request: HttpRequest) -> HttpResponse:
    """Create a folder, without a review page unless it gets a key of its own."""
    parents = [row.name for row in list_filesystems()[:1000]]
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
            job = confirm.start_without_review(operation, user=request.user.get_username())
            return redirect("job", pk=job.pk)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "parents": parents, "presets": PRESETS.values()}
    return live.respond_to_form(request, "datasets/create.html", context)
