"""Pools that come and go: bringing one in, exporting, destroying, checkpoints, upgrading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from appliance import names
from appliance.errors import Refused
from appliance.facts.box import Pool, PoolDetail
from appliance.facts.datasets import Dataset
from appliance.facts.importable import Importable
from appliance.operation import Operation
from appliance.pools.checkpoint import DiscardCheckpoint, RewindCheckpoint, TakeCheckpoint
from appliance.pools.export_destroy import DestroyPool, ExportPool
from appliance.pools.import_pool import FORCE_MEANS, SEARCH_MEANS, ImportPool
from appliance.pools.upgrade import UpgradePool
from appliance.shares.approve import ApproveShares
from appliance.shares.settings import ShareSetting, setting_of
from web import live
from web.inventory import store
from web.inventory.models import DatasetRow, DetailRow, DiskRow, ImportableRow, PoolRow, ShareRow, Source
from web.jobs import confirm, queue
from web.jobs.refusals import add_reasons, refusals_lead_to, validation_error

# A person who comes to the page again within this is shown what was found then.
LOOK_AGAIN = timedelta(seconds=5)
LONGEST_LOOK = timedelta(minutes=15)
DETAILS_FRESH = timedelta(seconds=20)
ACTS: dict[str, Callable[[str, int], Operation]] = {
    "export": lambda pool, guid: ExportPool(pool=pool, guid=guid),
    "destroy": lambda pool, guid: DestroyPool(pool=pool, guid=guid),
    "checkpoint": lambda pool, guid: TakeCheckpoint(pool=pool, guid=guid),
    "discard": lambda pool, guid: DiscardCheckpoint(pool=pool, guid=guid),
    "rewind": lambda pool, guid: RewindCheckpoint(pool=pool, guid=guid),
    "upgrade": lambda pool, guid: UpgradePool(pool=pool, guid=guid),
    "accept": lambda pool, guid: ApproveShares(pool=pool, guid=guid),
}


@dataclass(frozen=True)
class ImportCandidate:
    """A pool that could be brought in, with what its state means."""

    found: Importable
    state: str
    word: str
    meaning: str
    can: bool

    @property
    def key(self) -> str:
        return str(self.found.guid)


def import_candidate(found: Importable) -> ImportCandidate:
    """An importable pool in words."""
    if found.active_elsewhere:
        return ImportCandidate(
            found,
            "failed",
            "in use elsewhere",
            "Another system uses it at this moment. Export it there first.",
            can=False,
        )
    if found.read_only_only:
        return ImportCandidate(
            found,
            "attention",
            "can only be read",
            "It uses features that are newer than this system. It can be read here, not changed.",
            can=True,
        )
    if found.usable:
        weak = found.state == "DEGRADED"
        meaning = (
            "Some of its disks are missing or damaged, and it can still be used."
            if weak
            else "All of its disks are here."
        )
        if found.destroyed:
            meaning = "It was destroyed, and nothing has been written over it yet. It can be brought back."
        if found.other_host:
            meaning += (
                f" Another system{f' ({found.host})' if found.host else ''} used it last and did not let go of it."
            )
        word = "destroyed" if found.destroyed else ("weakened" if weak else "ready")
        return ImportCandidate(
            found,
            "attention" if weak or found.other_host else "empty" if found.destroyed else "healthy",
            word,
            meaning,
            can=True,
        )
    if found.log_missing:
        return ImportCandidate(
            found,
            "attention",
            "log missing",
            "Its log device is missing. Put it back, or give up the last seconds that only the log holds.",
            can=True,
        )
    if found.rewind and found.rewind.last_resort:
        return ImportCandidate(
            found,
            "attention",
            "damaged",
            "Its latest state is damaged, and those right before it do not help. As a last resort all its earlier states can be searched for a whole one:"
            f" at best it can be brought in as it was on {found.rewind.as_of}, at worst as on {found.rewind.at_worst}. Bring it in read-only first; that changes nothing.",
            can=True,
        )
    if found.rewind:
        lost = f" About {found.rewind.lost} of work would be lost." if found.rewind.lost else ""
        return ImportCandidate(
            found,
            "attention",
            "damaged",
            f"Its latest state is damaged. It can be brought in as it was on {found.rewind.as_of}.{lost}",
            can=True,
        )
    return ImportCandidate(
        found,
        "failed",
        "cannot be used",
        "Too few of its disks are here, or what they hold does not fit together. Put in the missing disks and look again.",
        can=False,
    )


@require_GET
def bring_in(request: HttpRequest) -> HttpResponse:
    """The pools that were found on the disks at the last look."""

    def build_context() -> dict[str, object]:
        here = set(PoolRow.objects.values_list("key", flat=True))
        found = [import_candidate(row.fact) for row in ImportableRow.objects.exclude(key__in=here).order_by("name")]
        uses = (use for row in DiskRow.objects.all() for use in row.fact.uses if use.kind == "exported")
        known = {one.key for one in found} | here
        hints = {use.identity: use.pool for use in uses if use.identity not in known}
        source = Source.objects.filter(name="importable").first()
        asked = source.requested if source else None
        looked = source.checked if source else None
        return {
            "candidates": [one for one in found if not one.found.destroyed],
            "destroyed": [one for one in found if one.found.destroyed],
            "hints": sorted(set(hints.values())),
            "looked": looked,
            "looking": bool(asked and timezone.now() - asked < LONGEST_LOOK and (looked is None or looked < asked)),
            "trouble": source.error if source else "",
        }

    return live.respond(request, "pools/bring_in.html", build_context)


@require_POST
def look_for_pools(_request: HttpRequest) -> HttpResponse:
    """Have all disks searched. It wakes sleeping ones, so a person asks for it."""
    if store.claim_refresh("importable", not_since=timezone.now() - LOOK_AGAIN):
        queue.send("workers.look_for_pools")
        store.touch("importable")
    return redirect("bring_in")


class ImportForm(forms.Form):
    """How a pool shall be brought in; what does not concern this pool is not asked."""

    name = forms.CharField(
        label="Name on this box",
        max_length=255,
        strip=False,
        help_text="Its folders appear below this name. Another name than before is kept in the pool.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )
    read_only = forms.BooleanField(
        label="Read-only",
        required=False,
        help_text="Nothing on its disks is changed. Good for a first look, or for copying from a damaged pool.",
    )
    move_folders = forms.BooleanField(
        label="Bring folders that belong elsewhere below the pool’s own folder",
        required=False,
        help_text="Some pools want folders at places like /home or /etc. Without this they stay unmounted here. With it they appear below the pool, and a system that starts from this pool may start no more.",
    )
    force = forms.BooleanField(
        label="The other system is off, or has lost these disks for good", required=False, help_text=FORCE_MEANS
    )
    rewind = forms.BooleanField(label="Go back to its last whole state", required=False)
    last_resort = forms.BooleanField(
        label="Search all its earlier states for a whole one", required=False, help_text=SEARCH_MEANS
    )
    without_log = forms.BooleanField(
        label="Go on without its log device",
        required=False,
        help_text="What programs wrote last, usually a few seconds, is lost if only the log holds it.",
    )

    def __init__(self, data: object, *, found: Importable) -> None:
        searched = bool(found.rewind and found.rewind.last_resort)
        super().__init__(data or None, initial={"name": found.name, "read_only": searched})  # type: ignore[arg-type]  # a QueryDict
        if not (found.other_host and not found.active_elsewhere):
            del self.fields["force"]
        if found.usable or found.rewind is None or not searched:
            del self.fields["last_resort"]
        if found.usable or found.rewind is None or searched:
            del self.fields["rewind"]
        else:
            lost = f", and lose about {found.rewind.lost} of work" if found.rewind.lost else ""
            self.fields["rewind"].help_text = f"It becomes as it was on {found.rewind.as_of}{lost}."
        if found.usable or not found.log_missing:
            del self.fields["without_log"]

    def clean_name(self) -> str:
        try:
            return names.existing_pool(self.cleaned_data["name"], field="name")
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal


@require_GET
def import_pool(request: HttpRequest, guid: str) -> HttpResponse:
    """Under which name and how, then the review."""
    row = ImportableRow.objects.filter(key=guid).first()
    if row is None:
        raise Http404
    found: Importable = row.fact
    form = ImportForm(request.GET if "answered" in request.GET else None, found=found)
    if form.is_bound and form.is_valid():
        try:
            operation = ImportPool(guid=found.guid, destroyed=found.destroyed, **form.cleaned_data)
            return confirm.review(request, operation, back=reverse("import_pool", args=[guid]))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "candidate": import_candidate(found), "found": found}
    return render(request, "pools/import.html", context, status=400 if form.is_bound else 200)


@dataclass(frozen=True)
class ShareOffer:
    """A share that a folder brought along and that nobody here has switched on."""

    dataset: Dataset
    setting: ShareSetting

    @property
    def name(self) -> str:
        named = self.setting.smb or self.setting.afp
        return named.name if named else self.dataset.mountpoint

    @property
    def people(self) -> str:
        named = self.setting.smb or self.setting.afp
        return ", ".join((*named.write, *named.read)) if named else ""


def share_offers(pool: Pool) -> list[ShareOffer]:
    """What the folders of a pool ask to be shared as, and are not; two queries."""
    served = {row.fact.path for row in ShareRow.objects.all()}
    asking = DatasetRow.objects.filter(pool=pool.name, facts__regex='"share_source":"(local|received)"').order_by(
        "name"
    )[:50]
    found = [(row.fact, setting_of(row.fact)) for row in asking]
    return [
        ShareOffer(dataset, setting)
        for dataset, setting in found
        if setting and setting.anything and dataset.mounted and dataset.mountpoint not in served
    ]


def lifecycle_context(pool: Pool) -> dict[str, object]:
    """What the pool's page says of moving or ending it. Looking asks for the details of the review pages."""
    if store.claim_refresh("looking-details", not_since=timezone.now() - DETAILS_FRESH):
        queue.send("workers.read_details")
    row = DetailRow.objects.filter(key=str(pool.guid)).first()
    detail: PoolDetail | None = row.fact if row else None
    return {"checkpoint": pool.checkpoint, "detail": detail, "offers": share_offers(pool)}


@require_GET
@refusals_lead_to("pool", "key")
def review_pool_act(request: HttpRequest, key: str, act: str) -> HttpResponse:
    """The review page of exporting, destroying or upgrading a pool, of its checkpoint, or of approving its shares."""
    row = PoolRow.objects.filter(key=key).first()
    if row is None or act not in ACTS:
        raise Http404
    return confirm.review(request, ACTS[act](row.name, row.fact.guid), back=reverse("pool", args=[key]))
