"""The list of disks, one disk, and erasing it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from appliance.disks.erase import EraseDisk
from appliance.disks.inventory import device_names
from web import live
from web.disks.burn_in_report import serial_of
from web.disks.models import BurnIn
from web.inventory.bays import bays_by_key
from web.inventory.box import read_box
from web.inventory.models import Event
from web.jobs import confirm
from web.jobs.refusals import refusals_lead_to


@require_GET
def disk_list(request: HttpRequest) -> HttpResponse:
    """Every disk: where it is, what it is, what it is used for."""

    def build() -> dict[str, object]:
        box = read_box()
        return {"box": box, "bays": box.bays}

    return live.respond(request, "disks/list.html", build)


@require_GET
def disk_page(request: HttpRequest, key: str) -> HttpResponse:
    """One disk."""

    def build() -> dict[str, object]:
        box = read_box()
        found = bays_by_key(box.bays).get(key)
        if found is None:
            raise Http404
        card = next((card for card in box.cards if card.pool.name == found.pool), None)
        events = Event.objects.filter(source="smartd", subject__in=device_names(found.disk))[:20]
        reports = list(BurnIn.objects.filter(serial=serial_of(found))[:20])
        return {"bay": found, "card": card, "events": events, "reports": reports}

    return live.respond(request, "disks/disk.html", build)


@require_GET
@refusals_lead_to("disk", "key")
def review_erase(request: HttpRequest, key: str) -> HttpResponse:
    """The review of erasing a disk, quickly or with zeros everywhere."""
    bay = bays_by_key(read_box().bays).get(key)
    if bay is None:
        raise Http404
    operation = EraseDisk(disk=bay.disk.path, how="full" if request.GET.get("how") == "full" else "quick")
    return confirm.review(request, operation, back=reverse("disk", args=[key]))
