"""Who may use a folder: a table of users and groups with an access level each."""

from __future__ import annotations

from typing import get_args

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from appliance import snapshot_names
from appliance.datasets.access_note import AccessNote, foreign_note, resolve_numbers, valid_note
from appliance.datasets.permissions import SetAccess
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.files.posix_acl import Level
from web.inventory.dataset_models import DatasetRow
from web.jobs import confirm
from web.users.views import read_user_facts

LEVELS: tuple[Level, ...] = get_args(Level)
AS_MADE = AccessNote(guid=0, everybody="change")  # the access of a new folder


class AccessLine(msgspec.Struct, frozen=True):
    """One row of the table: ``field`` is its name in the form, ``value`` the level chosen (empty: no own level)."""

    field: str
    who: str
    icon: str
    value: str
    note: str = ""


def build_lines(note: AccessNote, facts: Facts) -> list[AccessLine]:
    """The rows of the table: everybody, then groups, then users."""
    return [
        AccessLine("everybody", gettext("All users"), "users", note.everybody),
        *(
            AccessLine(
                f"group-{group.name}",
                group.name,
                "users",
                note.groups.get(group.name, "none"),
                ", ".join(group.members) or gettext("no members yet"),
            )
            for group in facts.groups
        ),
        *(
            AccessLine(
                f"person-{user.name}",
                user.called,
                "user",
                note.people.get(user.name, ""),
                user.name if user.display else "",
            )
            for user in facts.accounts
        ),
    ]


def parse_level(text: str) -> Level:
    """Parse a level of the form. Raises Refused."""
    found = next((one for one in LEVELS if one == text), None)
    if found is None:
        raise Refused(Reason("access-level-invalid", "Choose an access level for each user and group."))
    return found


def parse_form(request: HttpRequest, dataset: Dataset, facts: Facts) -> SetAccess:
    """Parse the form into an operation. Raises Refused."""
    people = {
        user.name: parse_level(text) for user in facts.accounts if (text := request.POST.get(f"person-{user.name}", ""))
    }
    groups = {
        group.name: parse_level(text)
        for group in facts.groups
        if (text := request.POST.get(f"group-{group.name}", "none")) != "none"
    }
    before = snapshot_names.name_for(snapshot_names.BEFORE, timezone.now()) if "before" in request.POST else ""
    everybody = parse_level(request.POST.get("everybody", ""))
    return SetAccess(dataset=dataset.name, everybody=everybody, people=people, groups=groups, before=before)


@require_http_methods(["GET", "POST"])
def set_access(request: HttpRequest, key: str) -> HttpResponse:
    """The table as a form, then the review page."""
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    facts = read_user_facts()
    reasons: tuple[Reason, ...] = ()
    note, elsewhere = valid_note(dataset, facts), foreign_note(dataset, facts)
    shown = note or elsewhere or AS_MADE
    if request.method == "POST":
        try:
            operation = parse_form(request, dataset, facts)
            shown = operation.make_note(dataset.guid)
            return confirm.review(request, operation, back=reverse("folder_access", args=[key]))
        except Refused as refusal:
            reasons = refusal.reasons
    context = {
        "dataset": dataset,
        "key": key,
        "lines": build_lines(shown, facts),
        "note": note,
        "elsewhere": elsewhere,
        "let_in_now": resolve_numbers(elsewhere, facts) if elsewhere else None,
        "reasons": reasons,
        "people": facts.accounts,
        "before": request.method != "POST" or "before" in request.POST,
    }
    return render(request, "users/access.html", context, status=400 if reasons else 200)
