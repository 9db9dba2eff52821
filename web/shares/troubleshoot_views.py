"""The addresses of a share, and the page that says why it cannot be seen, with fixes."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from appliance.operation import Operation
from appliance.shares.settings import SPOKEN, Protocol, setting_of
from appliance.shares.troubleshoot import diagnose, diagnosis
from appliance.shares.troubleshoot.fixes import OpenTopFolder, RepublishShare
from appliance.system.accounts import people_number
from web import live
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import AccountRow, SeenRow
from web.jobs import confirm, queue
from web.jobs.refusals import refusal_page
from web.shares import switches
from web.shares.box_address import read_box_address
from web.users.views import read_user_facts

LONGEST_LOOK = timedelta(minutes=2)


class Mend(msgspec.Struct, frozen=True):
    """A button: a form that is sent (``post``) or a page that is opened."""

    text: str
    link: str
    post: bool = False


def get_shared_dataset(key: str, protocol: str) -> tuple[Dataset, Protocol]:
    """The dataset of that key and the protocol. Raises Http404 where either is none."""
    if protocol not in SPOKEN:
        raise Http404
    return get_object_or_404(DatasetRow, key=key).fact, cast("Protocol", protocol)


@require_GET
def show_addresses(request: HttpRequest, key: str, protocol: str) -> HttpResponse:
    """What to type on each kind of computer."""
    dataset, known = get_shared_dataset(key, protocol)
    setting = setting_of(dataset)
    box = read_box_address(request)
    found = box.ways(setting, known, dataset.mountpoint) if setting else ()
    context = {"dataset": dataset, "key": key, "protocol": known, "protocol_name": SPOKEN[known], "ways": found}
    context["other_numbers"] = box.other_numbers
    if known == "nfs" and setting and setting.nfs:
        facts, client = read_user_facts(), setting.nfs.everybody_as
        context |= {
            "client_as": client,
            "client_gone": bool(client) and not facts.account(client),
            "users": facts.accounts,
            "people_gid": people_number(),
        }
    return render(request, "shares/addresses.html", context)


def mend_of(check: diagnosis.Check, key: str, seen: diagnosis.Diagnosis) -> Mend | None:
    """The button beside a check."""
    edit = reverse(switches.DETAILS[seen.protocol], args=[key])
    match check.mend:
        case "serve" | "mount":
            return Mend(gettext("Serve it again"), reverse("mend_share", args=[key, seen.protocol, "serve"]), post=True)
        case "let-in":
            return Mend(gettext("Let users in"), reverse("mend_share", args=[key, seen.protocol, "let-in"]))
        case "unlock":
            return Mend(
                gettext("Unlock {locked}").format(locked=seen.locked),
                f"{reverse('unlock')}?{urlencode({'dataset': seen.locked})}",
            )
        case "password":
            return Mend(gettext("Set a password"), reverse("user_password", args=[seen.person]))
        case "edit":
            return Mend(gettext("Change the share"), edit)
        case _:
            return None


@require_GET
def troubleshoot_share(request: HttpRequest, key: str, protocol: str) -> HttpResponse:
    """The last diagnosis of a share for the chosen user."""
    dataset, known = get_shared_dataset(key, protocol)
    person = request.GET.get("person", "")

    def build() -> dict[str, object]:
        row = SeenRow.objects.filter(key=SeenRow.key_of(key, known, person)).first()
        looking = row is not None and is_looking(row)
        seen: diagnosis.Diagnosis | None = row.fact if row else None
        checks = (
            diagnose.explain_diagnosis(dataset, seen, asked_from=request.META.get("HTTP_X_REAL_IP", "")) if seen else ()
        )
        setting = setting_of(dataset)
        return {
            "dataset": dataset,
            "key": key,
            "protocol": known,
            "protocol_name": SPOKEN[known],
            "ways": read_box_address(request).ways(setting, known, dataset.mountpoint) if setting else (),
            "person": person,
            "people": AccountRow.objects.order_by("name").values_list("name", flat=True),
            "checks": [(check, mend_of(check, key, seen)) for check in checks] if seen else [],
            "bad": sum(check.state == "failed" for check in checks),
            "looking": looking,
            "looked": row.checked if row else None,
            "trouble": row.error if row and not looking else "",
        }

    return live.respond(request, "shares/troubleshoot.html", build)


def is_looking(row: SeenRow) -> bool:
    """Whether what was last asked has no answer yet and may still get one."""
    asked, ended = row.requested, row.ended
    return bool(asked and (not ended or ended < asked) and timezone.now() - asked < LONGEST_LOOK)


def have_it_looked_at(key: str, protocol: str, person: str) -> None:
    """Send the worker; the page that shows it hears of the end."""
    SeenRow.objects.update_or_create(key=SeenRow.key_of(key, protocol, person), defaults={"requested": timezone.now()})
    queue.send("workers.look_at_share", key, protocol, person)


@require_POST
def look_at_share(request: HttpRequest, key: str, protocol: str) -> HttpResponse:
    """Start a diagnosis and go to the page that shows it."""
    get_shared_dataset(key, protocol)
    person = request.POST.get("person", "")
    if person and not AccountRow.objects.filter(name=person).exists():
        person = ""
    have_it_looked_at(key, protocol, person)
    query = f"?{urlencode({'person': person})}" if person else ""
    return redirect(f"{reverse('why', args=[key, protocol])}{query}")


def fix_operation(dataset: Dataset, protocol: Protocol, way: str) -> Operation:
    """The operation behind a button. Raises Http404."""
    if way == "serve":
        return RepublishShare(dataset=dataset.name, protocol=protocol)
    if way == "let-in":
        return OpenTopFolder(dataset=dataset.name)
    raise Http404


@require_http_methods(["GET", "POST"])
def fix_share(request: HttpRequest, key: str, protocol: str, way: str) -> HttpResponse:
    """Serving again is begun at once; what changes permissions is shown first."""
    dataset, known = get_shared_dataset(key, protocol)
    back = reverse("why", args=[key, known])
    try:
        operation = fix_operation(dataset, known, way)
        if way == "serve" and request.method == "POST":
            return redirect("job", pk=confirm.start_without_review(operation, user=request.user.get_username()).pk)
        return confirm.review(request, operation, back=back)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)
