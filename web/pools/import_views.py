"""Finding pools on the disks, and importing one."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec
from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from appliance import names
from appliance.errors import Refused
from appliance.facts.importable import Importable, Rewind
from appliance.pools.import_pool import SEARCH_MEANS, ImportPool
from appliance.pools.import_reasons import used_by_other_system
from web import live
from web.inventory import store
from web.inventory.fact_row import readable_facts
from web.inventory.models import DiskRow, ImportableRow, PoolRow, Source
from web.inventory.source_names import IMPORTABLE
from web.jobs import confirm, queue
from web.jobs.refusals import add_reasons, validation_error
from web.system.templatetags.formatting import count_units
from web.translation import lazy_text

ZFS_SPAN = re.compile(r"(\d{1,9}) (second|minute)s")
# A search is not repeated within this time; the page shows the last result.
LOOK_AGAIN = timedelta(seconds=5)
LONGEST_LOOK = timedelta(minutes=15)


class ImportCandidate(msgspec.Struct, frozen=True):
    """A pool that could be imported, with what its state means."""

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
        meaning = gettext("Another system uses it at this moment. Export it there first.")
        return ImportCandidate(found, "failed", gettext("in use elsewhere"), meaning, can=False)
    if found.read_only_only:
        meaning = gettext("It uses features that are newer than this system. It can be read here, not changed.")
        return ImportCandidate(found, "attention", gettext("can only be read"), meaning, can=True)
    if found.usable:
        return usable_candidate(found)
    if found.log_missing:
        meaning = gettext(
            "Its log device is missing. Put it back, or give up the last seconds that only the log holds."
        )
        return ImportCandidate(found, "attention", gettext("log missing"), meaning, can=True)
    if found.rewind:
        return ImportCandidate(found, "attention", gettext("damaged"), rewind_meaning(found.rewind), can=True)
    meaning = gettext(
        "Too few of its disks are here, or their data does not fit together. Put in the missing disks and look again."
    )
    return ImportCandidate(found, "failed", gettext("cannot be used"), meaning, can=False)


def usable_candidate(found: Importable) -> ImportCandidate:
    """An importable pool that is complete, or complete enough."""
    is_degraded = found.state == "DEGRADED"
    meaning = (
        gettext("Some of its disks are missing or damaged, and it can still be used.")
        if is_degraded
        else gettext("All of its disks are here.")
    )
    if found.destroyed:
        meaning = gettext("It was destroyed, and nothing has been written over it yet. It can be recovered.")
    if found.other_host:
        meaning += gettext(" Another system{part} used it last and did not export it.").format(
            part=f" ({found.host})" if found.host else ""
        )
    word = gettext("degraded") if is_degraded else gettext("ready")
    if found.destroyed:
        word = gettext("destroyed")
    state = "attention" if is_degraded or found.other_host else "empty" if found.destroyed else "healthy"
    return ImportCandidate(found, state, word, meaning, can=True)


def rewind_meaning(rewind: Rewind) -> str:
    """What is lost when a damaged pool is set back to an earlier state."""
    if rewind.last_resort:
        return gettext(
            "Its latest state is damaged, and those right before it do not help. As a last resort, all its "
            "earlier states can be searched for an intact one: at best it can be imported as it was on "
            "{as_of}, at worst as on {at_worst}. Import it read-only first; that changes nothing."
        ).format(as_of=rewind.as_of, at_worst=rewind.at_worst)
    lost = ""
    if rewind.lost:
        said = ZFS_SPAN.fullmatch(rewind.lost)
        span = count_units(said[2], int(said[1])) if said else rewind.lost
        lost = gettext(" About {lost} of work would be lost.").format(lost=span)
    return gettext("Its latest state is damaged. It can be imported as it was on {as_of}.{lost}").format(
        as_of=rewind.as_of, lost=lost
    )


@require_GET
def list_importable(request: HttpRequest) -> HttpResponse:
    """The pools that the last search found on the disks."""

    def build_context() -> dict[str, object]:
        here = set(PoolRow.objects.values_list("key", flat=True))
        candidates = [
            import_candidate(found)
            for found in readable_facts(ImportableRow.objects.exclude(key__in=here).order_by("name"))
        ]
        uses = (use for disk in readable_facts(DiskRow.objects.all()) for use in disk.uses if use.kind == "exported")
        known = {candidate.key for candidate in candidates} | here
        hints = {use.identity: use.pool for use in uses if use.identity not in known}
        source = Source.objects.filter(name=IMPORTABLE).first()
        asked = source.requested if source else None
        looked = source.checked if source else None
        return {
            "candidates": [candidate for candidate in candidates if not candidate.found.destroyed],
            "destroyed": [candidate for candidate in candidates if candidate.found.destroyed],
            "hints": sorted(set(hints.values())),
            "looked": looked,
            "looking": bool(asked and timezone.now() - asked < LONGEST_LOOK and (looked is None or looked < asked)),
            "trouble": source.error if source else "",
        }

    return live.respond(request, "pools/import_list.html", build_context)


@require_POST
def search_pools(_request: HttpRequest) -> HttpResponse:
    """Search all disks for pools. It wakes sleeping disks, so it runs only when a user asks for it."""
    if store.claim_refresh(IMPORTABLE, not_since=timezone.now() - LOOK_AGAIN):
        queue.send("workers.look_for_pools")
        store.touch(IMPORTABLE)
    return redirect("import_pools")


class ImportForm(forms.Form):
    """How to import a pool, with only the questions that this pool needs."""

    name = forms.CharField(
        label=lazy_text("Name on this box"),
        max_length=255,
        strip=False,
        help_text=lazy_text("Its folders appear below this name. A new name is stored in the pool."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )
    read_only = forms.BooleanField(
        label=lazy_text("Read-only"),
        required=False,
        help_text=lazy_text(
            "Nothing on its disks is changed. Good for a first look, or for copying from a damaged pool."
        ),
    )
    move_folders = forms.BooleanField(
        label=lazy_text("Bring folders that belong elsewhere below the pool’s own folder"),
        required=False,
        help_text=lazy_text(
            "Some pools want folders at places like /home or /etc. Without this they stay unmounted here. "
            "With it they appear below the pool, and a system that starts from this pool may no longer start."
        ),
    )
    force = forms.BooleanField(
        label=lazy_text("The other system is off, or has lost these disks for good"),
        required=False,
        help_text=used_by_other_system().text,
    )
    rewind = forms.BooleanField(label=lazy_text("Go back to its last intact state"), required=False)
    last_resort = forms.BooleanField(
        label=lazy_text("Search all its earlier states for an intact one"), required=False, help_text=SEARCH_MEANS
    )
    without_log = forms.BooleanField(
        label=lazy_text("Continue without its log device"),
        required=False,
        help_text=lazy_text("What programs wrote last, usually a few seconds, is lost if only the log holds it."),
    )

    def __init__(self, data: object, *, found: Importable) -> None:
        searched = bool(found.rewind and found.rewind.last_resort)
        # a QueryDict
        super().__init__(data or None, initial={"name": found.name, "read_only": searched})  # type: ignore[arg-type]
        if not (found.other_host and not found.active_elsewhere):
            del self.fields["force"]
        if found.usable or found.rewind is None or not searched:
            del self.fields["last_resort"]
        if found.usable or found.rewind is None or searched:
            del self.fields["rewind"]
        else:
            lost = (
                gettext(", and lose about {lost} of work").format(lost=found.rewind.lost) if found.rewind.lost else ""
            )
            self.fields["rewind"].help_text = gettext("It becomes as it was on {as_of}{lost}.").format(
                as_of=found.rewind.as_of, lost=lost
            )
        if found.usable or not found.log_missing:
            del self.fields["without_log"]

    def clean_name(self) -> str:
        try:
            return names.existing_pool(self.cleaned_data["name"], field="name")
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal


@require_GET
def import_pool(request: HttpRequest, guid: str) -> HttpResponse:
    """Ask for the name and how to import the pool, then show the review."""
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
