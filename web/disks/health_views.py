"""The health of one disk, now and over time, and accepting its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from appliance.disks.health import ACCEPTABLE, TEST_KINDS
from appliance.disks.selftest import StartSelfTest
from appliance.disks.selftest_schedule import hours_at
from appliance.disks.smart import NOT_UNDERSTOOD
from appliance.errors import Reason, Refused
from appliance.facts import vdev_state
from appliance.pools.vdevs.replace import ReplaceDisk
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import link_of
from web import live
from web.alerts.models import Accepted, Alert, DiskCare, DiskDay
from web.disks import bay_state, smart_history, standby_views
from web.disks.graphs import BOX, NAMES, describe_figures, draw_graphs
from web.inventory import store
from web.inventory.bays import Bay, bays_by_key
from web.inventory.box import read_box
from web.inventory.models import DiskRow
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import refusals_lead_to
from web.translation import text_of

SHOWN = timedelta(days=366)


@require_GET
def disk_health(request: HttpRequest, key: str) -> HttpResponse:
    """Verdict, reasons, figures, graphs, self-tests; with ``?report=1`` as plain text to attach to a warranty claim."""
    box = read_box()
    bay = bays_by_key(box.bays).get(key)
    row = DiskRow.objects.filter(key=key).first()
    if bay is None or row is None:
        raise Http404
    member = next((one for card in box.cards for one in card.pool.devices() if link_of(one) == key), None)
    if request.GET.get("report"):
        reply = HttpResponse(warranty_report(bay, row), content_type="text/plain; charset=utf-8")
        reply["Content-Disposition"] = 'attachment; filename="disk-report.txt"'
        return reply

    def build() -> dict[str, object]:
        state, word = bay_state.disk_state(row)
        accepted = {found.count: found for found in Accepted.objects.filter(disk=key)}
        care = DiskCare.objects.filter(disk=key).first() or DiskCare(disk=key)
        days = list(DiskDay.objects.filter(disk=key, day__gte=timezone.now().date() - SHOWN))
        lines = draw_graphs(days, {name: found.value for name, found in accepted.items()})
        return {
            "bay": bay,
            "row": row,
            "state": state,
            "word": word,
            "reasons": row.reasons,
            "silent": (silent := row.reading.get("silent", "")),
            "partly": silent.startswith((smart_history.NO_FIGURES, NOT_UNDERSTOOD)),
            "acceptable": smart_history.acceptable_values(row),
            "graphs": [one for one in lines if one.most],
            "never": [one.title for one in lines if not one.most],
            "figures": describe_figures(days, row.reading.get("figures", [])),
            "box_size": BOX,
            "tests": aged_tests(row.reading),
            "left": (left := row.reading.get("left")),
            "testing": left is not None or bool(row.reading.get("testing")),
            "hours": row.reading.get("hours"),
            "errors": row.reading.get("errors"),
            "member": member,
            "able": bool(row.reading.get("able")),
            "tested": care.tested,
            "sleep": standby_views.sleep_state(row, care, standby_views.mates_of(box.bays, key)),
            "busy": Job.objects.filter(state__in=Job.OPEN, kind="start-self-test", subject=bay.disk.path).exists(),
            "alerts": list(Alert.objects.filter(subject=key, kind__startswith="disk.")[:10]),
        }

    return live.respond(request, "disks/health.html", build)


def aged_tests(reading: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The self-tests of a row with the drive's full hours at each: its log stores hours in 16 bits."""
    return [{**test, "hours": hours_at(test["hours"], reading.get("hours"))} for test in reading.get("tests", [])]


def warranty_report(bay: Bay, row: DiskRow) -> str:
    """A plain-text report for a warranty claim: model, age, counts and self-tests."""
    lines = [
        gettext("Disk: {model}").format(model=bay.disk.model),
        gettext("Serial number: {serial}").format(serial=bay.disk.serial),
        gettext("Size: {size} bytes").format(size=bay.disk.size),
        gettext("Hours of use: {get}").format(get=row.reading.get("hours") or gettext("not reported")),
        gettext("Overall status: {part}").format(
            part=gettext("failed")
            if row.smart_passed is False
            else gettext("passed")
            if row.smart_passed
            else gettext("not reported")
        ),
        "",
        gettext("What it counts:"),
        *(f"  {text_of(NAMES.get(name, name))}: {value}" for name, value in row.reading.get("counts", {}).items()),
        "",
        gettext("Findings:"),
        *(f"  {text_of(reason[1])}" for reason in row.reasons),
        "",
        gettext("Self-tests, the newest first:"),
        *(
            "  "
            + gettext("{test}: {test_2} (at {part} hours of use)").format(
                test=text_of(TEST_KINDS.get(test["kind"], test["kind"])),
                test_2=text_of(test["text"]),
                part=gettext("unknown") if test["hours"] is None else test["hours"],
            )
            for test in aged_tests(row.reading)
        ),
    ]
    return "\n".join(lines) + "\n"


@require_POST
@refusals_lead_to("disk_health", "key")
def self_test(request: HttpRequest, key: str) -> HttpResponse:
    """Start a self-test as a job."""
    disk = get_object_or_404(DiskRow, key=key).fact
    kind: Literal["short", "long"] = "long" if request.POST.get("test") == "long" else "short"
    confirm.start_without_review(StartSelfTest(disk=disk.path, test=kind), user=request.user.get_username())
    return redirect("disk_health", key=key)


@require_GET
@refusals_lead_to("disk_health", "key")
def put_back(request: HttpRequest, key: str) -> HttpResponse:
    """Review putting an erased disk back into its place in its pool."""
    disk = get_object_or_404(DiskRow, key=key).fact
    for pool in store.facts().pools:
        place = vdev_tree.find_disk(pool, disk.path)
        if place and place.vdev.state not in vdev_state.WORKING:
            operation = ReplaceDisk(pool=pool.name, vdev=place.vdev.guid, disk=disk.path)
            return confirm.review(request, operation, back=reverse("disk_health", args=[key]))
    raise Refused(Reason("disk-not-awaited", "No pool waits for this disk."))


@require_POST
def accept_values(request: HttpRequest, key: str) -> HttpResponse:
    """Accept the values that the page showed, which give no alert until they grow."""
    row = get_object_or_404(DiskRow, key=key)
    shown = {name: int(text) for name in ACCEPTABLE if re.fullmatch("[0-9]{1,20}", text := request.POST.get(name, ""))}
    accepted, grown = smart_history.accept_values(row, shown, request.user.get_username())
    if grown:
        messages.error(
            request, gettext("Figures have changed since the page was shown. Look at them, then accept them.")
        )
    if accepted:
        messages.success(
            request,
            gettext("Accepted. You are notified again when a figure grows. The verdict changes within a few minutes."),
        )
    store.touch("disks")
    return redirect("disk_health", key=key)
