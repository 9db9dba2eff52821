"""Pages that start, show, pause, resume and stop the burn-in of a disk."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.db.models import Case, Q, When
from django.db.models.functions import Least
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from appliance import names
from appliance.burn_in.burn_in_disk import BurnInDisk
from appliance.burn_in.regions import split_disk
from appliance.burn_in.verdict import warm_limit
from appliance.disks.erase import confirm_text
from appliance.errors import Reason, Refused
from appliance.formatting import disk_label
from appliance.operation import checked_plan
from web import live
from web.disks import burn_in_report
from web.disks.models import BurnIn
from web.inventory import store
from web.inventory.bays import Bay, bays_by_key
from web.inventory.box import read_box
from web.inventory.models import Progress
from web.jobs import queue
from web.jobs.refusals import refusals_lead_to
from web.translation import lazy_format, lazy_text, text_of

USUAL_RATE = {True: 130 * 10**6, False: 350 * 10**6}  # bytes a second, by whether it has platters
State = BurnIn.State
# What a user can do with a burn-in: from which states, to which, and what is said then.
ACTS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "pause": (
        (State.RUNNING,),
        State.PAUSING,
        lazy_text("It pauses now. A region that is half done is tested again when you resume."),
    ),
    "resume": ((State.PAUSED, State.PAUSING), State.RUNNING, lazy_text("It goes on.")),
    "stop": (
        (State.RUNNING, State.PAUSING, State.PAUSED),
        State.STOPPING,
        lazy_text("It stops. What was found so far stays."),
    ),
}
# What is said instead while the disk tests itself: Larder only looks on.
SAID_IN_SELF_TEST = {
    "pause": lazy_text(
        "It pauses now. A self-test that has begun continues in the disk, and its result counts when you resume."
    ),
    "stop": lazy_text("It stops. A self-test that has begun continues in the disk. What was found so far stays."),
}


class SpeedForm(forms.Form):
    rate = forms.TypedChoiceField(
        label=lazy_text("Speed"),
        coerce=int,
        initial=0,
        choices=(
            (0, lazy_text("As fast as it can")),
            *((rate * 10**6, lazy_format("At most {rate} MB/s", rate=rate)) for rate in (100, 50, 20)),
        ),
        help_text=lazy_text("A limit leaves the controller free for other disks, and the burn-in takes longer."),
    )


class BurnInForm(SpeedForm):
    field_order = ("how", "rate")
    how = forms.ChoiceField(
        label=lazy_text("What to test"),
        widget=forms.RadioSelect,
        initial="write",
        choices=(
            ("write", lazy_text("Self-tests, then write every sector and read it back")),
            ("tests", lazy_text("Self-tests only: nothing on the disk changes")),
        ),
    )


def find_bay(key: str) -> Bay:
    """The bay with that disk. Raises Http404, and Refused where the disk cannot be tested."""
    bay = bays_by_key(read_box().bays).get(key)
    if bay is None:
        raise Http404
    if not bay.disk.path:
        raise Refused(
            Reason("burn-in-without-name", "This disk reports no serial number, so it could be mistaken for another.")
        )
    if bay.disk.blocked:
        raise Refused(
            Reason(
                "burn-in-disk-blocked",
                "{disk} {use}. Burn-in is for a disk before it enters a pool.",
                disk=disk_label(bay.disk),
                use=text_of(bay.disk.blocked.text),
            )
        )
    return bay


def checked_write(bay: Bay, rate: int) -> list[str]:
    """The commands for the first region, after the agent has looked at the disk. Raises Refused."""
    if not split_disk(bay.disk.size):
        raise Refused(Reason("burn-in-disk-small", "This disk is too small for a pool, so it is not tested."))
    operation = BurnInDisk(disk=bay.disk.path, size=bay.disk.size, first=1, rate=rate)
    return [step.command_text for step in checked_plan(operation, store.facts_for(operation)).steps]


@require_GET
@refusals_lead_to("disk", "key")
def new_burn_in(request: HttpRequest, key: str) -> HttpResponse:
    """The form, or the review once its values are valid; a burn-in that has not ended is shown instead."""
    bay = find_bay(key)
    serial = burn_in_report.serial_of(bay)
    if row := BurnIn.objects.filter(serial=serial, state__in=BurnIn.OPEN).first():
        return redirect("burn_in", pk=row.pk)
    answered = "answered" in request.GET
    form = BurnInForm(request.GET if answered else None)
    if answered and form.is_valid():
        return review(request, bay, form.cleaned_data)
    queue.request_refresh()
    context = {"bay": bay, "form": form, "reports": list(BurnIn.objects.filter(serial=serial)[:20])}
    return render(request, "disks/burn_in_new.html", context, status=400 if answered else 200)


def review(
    request: HttpRequest, bay: Bay, values: dict[str, Any], *, pk: str = "", error: str = "", status: int = 200
) -> HttpResponse:
    """The review: what happens to which disk, and how long it takes. Raises Refused."""
    writes, rate = values["how"] == "write", values["rate"]
    usual = USUAL_RATE[bay.disk.rotational]
    context = {
        "bay": bay,
        "how": values["how"],
        "rate": rate,
        "writes": writes,
        "commands": checked_write(bay, rate) if writes else [],
        "word": confirm_text(bay.disk),
        "error": error,
        "usual": min(rate or usual, usual),
        "seconds": 2 * bay.disk.size // min(rate or usual, usual),
        "pk": pk or str(uuid.uuid4()),
    }
    return render(request, "disks/burn_in_review.html", context, status=status)


@require_POST
@refusals_lead_to("disk", "key")
def start_burn_in(request: HttpRequest, key: str) -> HttpResponse:
    """Start the burn-in of a confirmed review, after checking it again. The same review twice is the same burn-in."""
    pk = names.job_id(request.POST.get("burn_in", ""))
    if BurnIn.objects.filter(pk=pk).exists():
        return redirect("burn_in", pk=pk)
    bay = find_bay(key)
    form = BurnInForm(request.POST)
    if not form.is_valid():
        raise Refused(Reason("burn-in-unreadable", "These settings cannot be read. Start again from the disk’s page."))
    values = form.cleaned_data
    if values["how"] == "write":
        checked_write(bay, values["rate"])
        if request.POST.get("typed", "") != (word := confirm_text(bay.disk)):
            return review(
                request, bay, values, pk=pk, error=gettext("Type {word} exactly.").format(word=word), status=400
            )
    row = BurnIn(
        pk=uuid.UUID(pk),
        disk=bay.key,
        path=bay.disk.path,
        serial=burn_in_report.serial_of(bay),
        model=bay.disk.model,
        size=bay.disk.size,
        rotational=bay.disk.rotational,
        writes=values["how"] == "write",
        rate=values["rate"],
        created_by=request.user.get_username(),
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        # Another one of this disk has begun meanwhile.
        return redirect("new_burn_in", key=key)
    store.touch("burn-ins")
    queue.send("workers.tick")
    return redirect("burn_in", pk=row.pk)


@require_GET
def show_burn_in(request: HttpRequest, pk: str) -> HttpResponse:
    """How far it is, then its verdict: one page, to be printed for a warranty."""
    get_object_or_404(BurnIn, pk=pk)

    def build() -> dict[str, object]:
        row = BurnIn.objects.get(pk=pk)
        regions, results = row.regions, row.tested
        degrees = [warm for _minute, warm in row.temperatures]
        return {
            "row": row,
            "bay": bays_by_key(read_box().bays).get(row.disk),
            "state": burn_in_report.STATES.get(row.verdict, ""),
            "word": burn_in_report.WORDS.get(row.verdict, ""),
            "headline": burn_in_report.HEADLINES.get(row.verdict, ""),
            "tested_well": burn_in_report.describe_clean(row),
            "speed": SpeedForm(initial={"rate": row.rate})
            if row.state == State.PAUSED and has_writes_left(row)
            else None,
            "stage": burn_in_report.STAGES[row.stage],
            "progress": Progress.objects.filter(job=row.job).first() if row.job else None,
            "left": row.left,
            "testing": row.is_testing,
            "under_way": row.stage in BurnIn.SELF_TESTS and row.attempts and not row.text,
            "tested": len(results),
            "total": len(regions),
            "percent": len(results) * 100 // max(len(regions), 1),
            "graph": burn_in_report.draw_speeds(regions, results),
            "bad": burn_in_report.list_bad(regions, results),
            "changes": burn_in_report.list_changes(row),
            "curve": burn_in_report.draw_temperatures(row.temperatures),
            "coolest": min(degrees, default=0),
            "hottest": max(degrees, default=0),
            "warm": warm_limit(row.reading.get("limit"), rotational=row.rotational),
            "live_ended": not row.open,
        }

    return live.respond(request, "disks/burn_in.html", build)


def chosen_rate(request: HttpRequest) -> int:
    """The limit in bytes a second, 0 for none. Raises Refused."""
    form = SpeedForm(request.POST)
    if not form.is_valid():
        raise Refused(Reason("burn-in-speed-unknown", "This speed is not offered. Choose one from the list."))
    rate: int = form.cleaned_data["rate"]
    return rate


def has_writes_left(row: BurnIn) -> bool:
    return row.writes and row.stage != "last"


@require_POST
@refusals_lead_to("burn_in", "pk")
def act_burn_in(request: HttpRequest, pk: str, what: str) -> HttpResponse:
    """Pause, resume or stop; to resume, also with another limit. Harmless to repeat.
    Raises Refused where it still pauses."""
    if what not in ACTS:
        raise Http404
    row = get_object_or_404(BurnIn, pk=pk)
    states, wanted, said = ACTS[what]
    allowed = Q(state__in=states)
    if row.stage in BurnIn.SELF_TESTS:
        said = SAID_IN_SELF_TEST.get(what, said)
    values: dict[str, Any] = {"state": wanted}
    if what == "resume":
        # The tries are counted anew, except that a self-test begun before is looked for: it may have ended meanwhile.
        begun = Case(When(stage__in=BurnIn.SELF_TESTS, then=Least("attempts", 1)), default=0)
        values |= {"text": "", "attempts": begun, "wanted": None}
        # A job that was asked to stop stops all the same, and the burn-in would pause again for it.
        allowed &= ~Q(state=State.PAUSING) | Q(job=None)
        if "rate" in request.POST:
            allowed = Q(state=State.PAUSED)  # before that, a job still runs with the limit of before
            values["rate"] = chosen_rate(request)
    if BurnIn.objects.filter(allowed, pk=row.pk).update(**values):
        messages.success(request, said)
    elif what == "resume" and BurnIn.objects.filter(pk=row.pk, state=State.PAUSING).exists():
        raise Refused(
            Reason(
                "burn-in-still-pausing",
                "The pause has not taken effect yet. Wait until the burn-in is paused, then resume.",
            )
        )
    store.touch("burn-ins")
    queue.send("workers.tick")
    return redirect(reverse("burn_in", args=[row.pk]))
