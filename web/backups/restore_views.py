"""The page that restores a whole folder out of its copy: which moment, where to, under which
name; the review follows."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from django import forms
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from appliance import names
from appliance.backups.copies import free_name, is_copy
from appliance.backups.moments import Kept, Moment, choose_snapshots, list_moments
from appliance.backups.origin import parse_origin
from appliance.backups.restore_folder import RestoreFolder
from appliance.backups.tasks import HOME
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from web import live
from web.backups import status
from web.forms_common import with_free_space
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.inventory.fact_row import strict_about
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusals_lead_to, validation_error
from web.system.templatetags.formatting import date
from web.translation import lazy_text

PARENTS = 1000
LONGEST_STEM = 48  # of a proposed name


class RestoreForm(forms.Form):
    """Which moment of a copy, and where it goes."""

    snapshot = forms.ChoiceField(label=lazy_text("As it was on"))
    parent = forms.ChoiceField(label=lazy_text("Into the folder"))
    name = forms.CharField(
        label=lazy_text("Name"),
        max_length=60,
        strip=False,
        help_text=lazy_text("No folder may have this name yet."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )

    def __init__(self, data: object, *, place: tuple[str, str], facts: Facts, dates: list[tuple[str, str]]) -> None:
        super().__init__(data, initial={"parent": place[0], "name": place[1]})  # type: ignore[arg-type]  # a QueryDict
        self.fields["snapshot"].choices = dates  # type: ignore[attr-defined]
        self.fields["parent"].choices = [  # type: ignore[attr-defined]
            (
                one.name,
                with_free_space(one.name, one.available),
            )
            for one in possible_parents(facts)
        ]

    def clean_name(self) -> str:
        try:
            return names.check_folder_name(self.cleaned_data["name"])
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal


def moment_choices(moments: Iterable[Moment]) -> list[tuple[str, str]]:
    """The moments that can be chosen, each with the name of its snapshots, the newest first."""
    dated = ((one.short, timezone.localtime(datetime.fromtimestamp(one.created, UTC))) for one in moments)
    choices = [(short, date(made, "j M Y, H:i")) for short, made in dated]
    if choices:
        short, label = choices[0]
        choices[0] = (short, gettext("{moment} (newest)").format(moment=label))
    return choices


def possible_parents(facts: Facts) -> list[Dataset]:
    """The folders that a restored one can lie in: never among copies."""
    return [
        one
        for one in facts.datasets
        if one.kind == "filesystem" and one.mountpoint.startswith("/") and not (one.copy_of or one.scratch)
    ][:PARENTS]


def proposed_place(copy: Dataset, facts: Facts) -> tuple[str, str]:
    """Beside the original where that is there; its place where it is gone and the copy remembers it; else the copy's
    own name, in another pool than the copy if there is one."""
    mark = parse_copy_mark(copy.copy_of)
    original = facts.dataset_of(mark.guid) if mark else None
    taken = {one.name for one in facts.datasets}
    if original:
        return place_beside(original, taken)
    if (origin := parse_origin(copy)) and origin.name.rpartition("/")[0] in {
        one.name for one in possible_parents(facts)
    }:
        parent, _slash, stem = origin.name.rpartition("/")
    else:
        tops = sorted((one.pool == copy.pool, one.name) for one in possible_parents(facts) if "/" not in one.name)
        parent, stem = tops[0][1] if tops else "", copy.name.rpartition("/")[2][:LONGEST_STEM]
    return parent, free_name(f"{parent}/{stem}", taken).rpartition("/")[2]


def place_beside(original: Dataset, taken: set[str]) -> tuple[str, str]:
    """A free name beside a folder that is still there."""
    parent = original.name.rpartition("/")[0] or original.name
    stem = f"{original.name.rpartition('/')[2][:LONGEST_STEM]}-restored"
    return parent, free_name(f"{parent}/{stem}", taken).rpartition("/")[2]


@require_http_methods(["GET", "POST"])
@refusals_lead_to("folder", "key")
def restore_folder(request: HttpRequest, key: str) -> HttpResponse:
    """Ask for the moment and the place, then review."""
    copy: Dataset = get_object_or_404(DatasetRow, key=key).fact
    mark = parse_copy_mark(copy.copy_of)
    if mark is None or not is_copy(copy):
        raise Refused(Reason("not-a-copy", "{dataset} is not a copy that a backup made.", dataset=copy.name))
    facts = status.read_facts(strict_about(copy.name))
    kept = kept_in(copy, facts)
    moments = list_moments(kept, copy.name)
    dates = moment_choices(moments)
    form = RestoreForm(request.POST or None, place=proposed_place(copy, facts), facts=facts, dates=dates)
    if request.method == "POST" and form.is_valid():
        try:
            operation = operation_of(copy, kept, form.cleaned_data)
            return confirm.review(request, operation, back=reverse("restore_folder", args=[key]))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {
        "form": form,
        "copy": copy,
        "key": key,
        "moments": moments,
        "home": HOME,
        "original": facts.dataset_of(mark.guid) if mark.guid else None,
    }
    return live.respond_to_form(request, "backups/restore.html", context)


def kept_in(copy: Dataset, facts: Facts) -> list[Kept]:
    """The snapshots of the copy and of the copies below it."""
    copies = {one.name for one in facts.below(copy.name) if one.copy_of}
    rows = SnapshotRow.objects.filter(Q(dataset=copy.name) | Q(dataset__startswith=f"{copy.name}/"))
    found = rows.values_list("dataset", "short", "guid", "txg", "created").iterator()
    return [
        Kept(sys.intern(dataset), sys.intern(short), int(guid), txg, int(created.timestamp()))
        for dataset, short, guid, txg, created in found
        if dataset in copies
    ]


def operation_of(copy: Dataset, kept: Collection[Kept], answers: dict[str, str]) -> RestoreFolder:
    """The restore of the copy and of what lies below it, as of the chosen moment."""
    chosen = choose_snapshots(kept, answers["snapshot"], copy.name)
    return RestoreFolder(
        copy=copy.name,
        guid=copy.guid,
        snapshots=tuple((f"{one.dataset}@{one.short}", one.guid) for one in chosen),
        moment=answers["snapshot"],
        parent=answers["parent"],
        name=answers["name"],
        token=secrets.token_hex(4),
    )
