"""Bays: their labels and order, and the locate light."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from appliance import agent_client, names
from appliance.errors import LarderError, Refused, explain_error
from web import agent
from web.disks.models import BayRow
from web.inventory import store
from web.inventory.bays import Bay
from web.inventory.box import read_box
from web.inventory.models import DiskRow
from web.jobs.views import local_address
from web.translation import lazy_text, text_of

LIGHT = lazy_text("The light of its bay is on for {} seconds.")
BLINK = lazy_text(
    "This bay has no light, so Larder reads from the disk: its activity light blinks for {} seconds, one "
    "second on and one off."
)
PERHAPS = lazy_text(
    "The light of its bay is on, if there is one. Larder also reads from the disk: its activity light blinks "
    "for {} seconds."
)
SAID = {"light": LIGHT, "perhaps": PERHAPS}


class BayLine(msgspec.Struct, frozen=True):
    """A bay as a line of the form."""

    pk: int
    position: int
    label: str
    port: str
    bay: Bay | None

    @property
    def name(self) -> str:
        return self.label or str(self.position)


def bay_lines() -> list[BayLine]:
    found = {bay.number: bay for bay in read_box().bays if bay.in_front}
    return [BayLine(row.pk, row.position, row.label, row.port, found.get(row.position)) for row in BayRow.objects.all()]


@require_http_methods(["GET", "POST"])
def bays(request: HttpRequest) -> HttpResponse:
    """All known bays with place and label, as a form."""
    errors: list[str] = []
    if request.method == "POST":
        errors = store_bays(request)
        if not errors:
            store.touch("bays")
            messages.success(request, gettext("Saved."))
            return redirect("bays")
    return render(request, "disks/bays.html", {"rows": bay_lines(), "errors": errors}, status=400 if errors else 200)


def store_bays(request: HttpRequest) -> list[str]:
    """Store places and labels; returns the errors, in which case nothing was stored."""
    errors, kept, forgotten = [], [], []
    lines, rows = bay_lines(), list(BayRow.objects.all())
    taken = {line.pk for line in lines if line.bay}
    for row in rows:
        if request.POST.get(f"forget-{row.pk}") == "on" and row.pk not in taken:
            forgotten.append(row.pk)
            continue
        place, label = (
            request.POST.get(f"position-{row.pk}", ""),
            request.POST.get(f"label-{row.pk}", row.label).strip(),
        )
        try:
            names.refuse_invisible_characters(label, "label")
        except Refused as refusal:
            errors.append(text_of(explain_error(refusal)))
        if len(label) > 20:
            errors.append(
                gettext("{label}… is longer than 20 characters. Choose a shorter name.").format(label=label[:20])
            )
        if not (place.isascii() and place.isdigit() and 1 <= int(place[:4]) <= 999 and len(place) <= 3):
            errors.append(gettext("The place of bay {row} is a number from 1 to 999.").format(row=row))
            continue
        row.position, row.label = int(place), label
        kept.append(row)
    errors += name_errors(kept, count_outside(rows))
    if not errors:
        with transaction.atomic():
            BayRow.objects.bulk_update(kept, ["position", "label"])
            BayRow.objects.filter(pk__in=forgotten).delete()
    return errors


def count_outside(known: list[BayRow]) -> int:
    """How many disks are outside the known bays and get a number of their own (``list_bays``)."""
    places = {row.position for row in known}
    return sum(bay.number not in places for bay in read_box().bays)


def name_errors(kept: list[BayRow], outside: int) -> Iterator[str]:
    """Why pages could name two disks alike. A bay without a label is called by its place, a
    disk outside by a number."""
    if len({row.position for row in kept}) < len(kept):
        yield gettext("Two bays have the same place. Give each its own.")
    labels = [row.label for row in kept if row.label]
    places = {str(row.position) for row in kept if not row.label}
    if len(set(labels)) < len(labels):
        yield gettext("Two bays have the same name. Give each its own.")
    for label in labels:
        if label in places:
            yield gettext("{label} is the place of another bay that has no label. Choose another name.").format(
                label=label
            )
    first = max((row.position for row in kept), default=0) + 1
    for label in sorted({str(number) for number in range(first, first + outside)} & set(labels)):
        yield gettext("{label} is the number of a disk that is in no bay. Choose another name.").format(label=label)


@require_POST
def locate(request: HttpRequest, key: str) -> HttpResponse:
    """Start the locate light of a disk for half a minute, without waiting for its end."""
    disk = get_object_or_404(DiskRow, pk=key).fact
    if not disk.path:
        raise Http404
    try:
        with agent.turn():
            answer = next(iter(agent_client.stream_replies({"verb": "locate", "disk": disk.path}, silence=20)), {}).get(
                "facts", {}
            )
        messages.success(request, SAID.get(str(answer.get("way")), BLINK).format(int(answer.get("seconds", 30))))
    except LarderError as error:
        messages.error(
            request, gettext("The disk cannot be located: {error}").format(error=text_of(explain_error(error)))
        )
    return redirect(local_address(request.POST.get("next", f"/disks/{key}/")))
