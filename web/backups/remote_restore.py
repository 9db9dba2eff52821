"""Pages that bring a copy back from another computer: what lies there, then which moment, where to, and the review."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from appliance import snapshot_names
from appliance.backups import tasks
from appliance.backups.copies import free_name
from appliance.backups.remote.requests import CopyTree, ListedCopy
from appliance.backups.remote.restore_remote import SHORT, RestoreRemote
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.remote import Remote
from web import agent, live
from web.backups import status
from web.backups.forms import rate_field
from web.backups.remote_views import find_remote
from web.backups.restore_views import LONGEST_STEM, RestoreForm, moment_choices, place_beside, possible_parents
from web.inventory.fact_row import look_up_or_none
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusals_lead_to
from web.translation import lazy_text

T = TypeVar("T")
SECONDS = 150  # ssh gives up before
UNREADABLE = "Larder does not understand what was answered."


class RestoreRemoteForm(RestoreForm):
    """Which moment of a copy, where it goes, and how fast."""

    rate = rate_field(
        lazy_text("So that others are not kept waiting. Leave it empty to copy as fast as the network can.")
    )


class CopyThere(msgspec.Struct, frozen=True):
    """A copy as the list shows it. ``newest``: its newest moment; ``folder``: its original, where that is here."""

    name: str
    newest: datetime | None
    snapshots: int
    folder: Dataset | None


def ask_there(ask: Callable[[], object], kind: type[T]) -> tuple[T | None, str]:
    """What the other computer answers, and the problem as text where it does not."""
    try:
        return msgspec.convert(ask(), kind), ""
    except (Refused, Failed) as error:
        return None, explain_error(error)
    except msgspec.ValidationError:
        return None, UNREADABLE


@require_GET
def list_copies(request: HttpRequest, key: str) -> HttpResponse:
    """Every copy on a computer, each of which can be restored."""
    remote, facts = find_remote(key), status.read_facts(look_up_or_none)
    asked = {"verb": "list-remote-copies", "remote": key}
    found, problem = ask_there(lambda: agent.last(asked, silence=SECONDS)["facts"], tuple[ListedCopy, ...])
    copies = [
        CopyThere(
            one.name, moment_of(one.short), one.snapshots, facts.dataset_of(one.original) if one.original else None
        )
        for one in found or ()
    ]
    return render(request, "backups/remote_copies.html", {"remote": remote, "copies": copies, "problem": problem})


def moment_of(short: str) -> datetime | None:
    """When a snapshot of a backup was taken, by its name; None for any other."""
    prefix = status.NAMES
    return snapshot_names.parse_moment(short.removeprefix(prefix)) if short.startswith(prefix) else None


@require_http_methods(["GET", "POST"])
@refusals_lead_to("remote", "key")
def restore_copy(request: HttpRequest, key: str, copy: str) -> HttpResponse:
    """Ask for the moment and the place, then review."""
    remote, facts = find_remote(key), status.read_facts(look_up_or_none)
    chosen = request.POST.get("snapshot", "")
    asked = {
        "verb": "read-remote-copy",
        "remote": key,
        "copy": copy,
        "moment": chosen if SHORT.fullmatch(chosen) else "",
    }
    tree, problem = ask_there(lambda: agent.last(asked, silence=SECONDS)["facts"], CopyTree)
    if tree is None or not tree.moments:
        context = {"remote": remote, "copy": copy, "problem": problem}
        return render(request, "backups/restore_remote.html", context)
    original = facts.dataset_of(tree.original) if tree.original else None
    place = proposed_place(copy, original, facts)
    form = RestoreRemoteForm(request.POST or None, place=place, facts=facts, dates=moment_choices(tree.moments))
    form.fields["rate"].initial = usual_rate(remote, copy, facts)
    if request.method == "POST" and form.is_valid():
        try:
            operation = operation_of(remote, copy, tree, form.cleaned_data)
            return confirm.review(request, operation, back=reverse("restore_remote", args=[key, copy]))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "remote": remote, "copy": copy, "original": original}
    return live.respond_to_form(request, "backups/restore_remote.html", context)


def proposed_place(copy: str, original: Dataset | None, facts: Facts) -> tuple[str, str]:
    """Beside the original where that is there, else the copy's own name in the pool with most room."""
    taken = {one.name for one in facts.datasets}
    if original:
        return place_beside(original, taken)
    tops = sorted((-one.available, one.name) for one in possible_parents(facts) if "/" not in one.name)
    parent, stem = tops[0][1] if tops else "", copy.rpartition("/")[2][:LONGEST_STEM]
    return parent, free_name(f"{parent}/{stem}", taken).rpartition("/")[2]


def usual_rate(remote: Remote, copy: str, facts: Facts) -> int | None:
    """How fast the backup that made the copy may send at most, where it is still there."""
    found = [task for one in facts.datasets for task in tasks.tasks_of(one) if task.remote == remote.id]
    return next((task.rate for task in found if task.rate and f"{copy}/".startswith(f"{task.path}/")), None)


def operation_of(remote: Remote, copy: str, tree: CopyTree, answers: dict[str, str]) -> RestoreRemote:
    """The restore of the chosen moment. Raises Refused."""
    chosen = next((one for one in tree.moments if one.short == answers["snapshot"]), None)
    if chosen is None or not tree.parts:
        raise Refused(
            Reason("snapshot-missing", "The snapshot {snapshot} is no longer there.", field="snapshot", snapshot=copy)
        )
    return RestoreRemote(
        remote=remote.id,
        copy=copy,
        guid=tree.parts[0].guid,
        parts=tree.parts,
        moment=chosen.short,
        created=chosen.created,
        parent=answers["parent"],
        name=answers["name"],
        token=secrets.token_hex(4),
        rate=int(answers["rate"] or 0),
        left=max(0, tree.folders - len(tree.parts)),
    )
