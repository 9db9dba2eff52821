"""The sleep timer of a hard disk, or of all disks of its pool."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from appliance.disks.standby import MINUTES
from web.alerts.models import DiskCare
from web.forms_common import not_possible
from web.inventory import store
from web.inventory.bays import Bay
from web.inventory.box import read_box
from web.inventory.models import DiskRow
from web.jobs import queue
from web.translation import lazy_text

WORDS = {
    0: lazy_text("never"),
    10: lazy_text("after 10 minutes without work"),
    20: lazy_text("after 20 minutes"),
    30: lazy_text("after half an hour"),
    60: lazy_text("after an hour"),
    120: lazy_text("after two hours"),
}
AS_IT_IS = ""  # Larder leaves the disk's own timer alone


def can_sleep(row: DiskRow) -> bool:
    """Whether the disk is rotational and takes ATA commands."""
    return row.fact.rotational and bool(row.reading.get("ata"))


def sleep_state(row: DiskRow, care: DiskCare, mates: list[DiskRow]) -> dict[str, object]:
    """The context of the sleep card. ``mates``: the other disks of the pool."""
    return {
        "can": can_sleep(row),
        "choices": [
            (AS_IT_IS, gettext("as the disk has it"), care.sleep is None),
            *((str(minutes), WORDS[minutes], care.sleep == minutes) for minutes in MINUTES),
        ],
        "wanted": care.sleep is not None,
        "waits": care.sleep is not None and not care.told,
        "refused": "" if care.answer == "told" else care.answer,
        "mates": any(map(can_sleep, mates)),
    }


def mates_of(bays: Iterable[Bay], key: str) -> list[DiskRow]:
    """The other disks of the pool, which wake together."""
    bays = list(bays)
    pool = next((bay.pool_key for bay in bays if bay.key == key), "")
    return list(
        DiskRow.objects.filter(key__in=[bay.key for bay in bays if pool and bay.pool_key == pool and bay.key != key])
    )


@require_POST
def set_sleep(request: HttpRequest, key: str) -> HttpResponse:
    """Store the sleep timer; the worker sets it now and whenever the disk may have lost power."""
    row = get_object_or_404(DiskRow, key=key)
    wanted = request.POST.get("sleep", AS_IT_IS)
    if (wanted != AS_IT_IS and wanted not in {str(minutes) for minutes in MINUTES}) or not can_sleep(row):
        return not_possible(request, gettext("This disk has no such sleep timer."))
    minutes = int(wanted) if wanted else None
    mates = mates_of(read_box().bays, key) if request.POST.get("all") else []
    for one in filter(can_sleep, [row, *mates]):
        DiskCare.objects.update_or_create(
            disk=one.key,
            defaults={"sleep": minutes, "told": "", "answer": ""},
            create_defaults={"sleep": minutes, "since": timezone.now()},
        )
    store.touch("disks")
    queue.send("workers.sleep")
    messages.success(request, gettext("Saved."))
    return redirect("disk_health", key=key)
