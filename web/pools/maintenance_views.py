"""Scrub and trim of a pool, their schedules, and the pool's properties."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec
from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance import schedule as appliance_schedule
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts, Pool
from appliance.operation import Operation
from appliance.pools import maintenance_schedule
from appliance.pools.properties import KNOWN, LONGEST_COMMENT, PoolPropertyWords, SetPoolProperty
from appliance.pools.scrub import PauseScrub, StartScrub, StopScrub
from appliance.pools.trim import StartTrim, StopTrim
from web import live
from web.forms_common import HOURS
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.inventory.models import Activity, DiskRow, PoolRow, PropertiesRow
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import refusals_lead_to, validation_error
from web.pools import maintenance
from web.pools.models import CareSchedule, WorkReport
from web.translation import lazy_text, text_of

EVERY = (
    ("never", lazy_text("Never automatically")),
    ("week", lazy_text("Every week")),
    ("month", lazy_text("Every month")),
    ("quarter", lazy_text("Every three months")),
)
OWN = {"scrub": ("start-scrub", "pause-scrub", "stop-scrub"), "trim": ("start-trim", "stop-trim")}
SHOWN = 3


def get_pool(key: str) -> Pool:
    """The pool with that guid. Raises Http404."""
    pool: Pool = get_object_or_404(PoolRow, key=key).fact
    return pool


def start_job(request: HttpRequest, operation: Operation, back: str) -> HttpResponse:
    """Create the job of a small act and go back. Raises Refused."""
    confirm.start_without_review(operation, user=request.user.get_username())
    return redirect(back)


@require_POST
@refusals_lead_to("pool", "key")
def scrub_pool(request: HttpRequest, key: str) -> HttpResponse:
    """Start, resume or pause a scrub."""
    pool = get_pool(key)
    pause = request.POST.get("act") == "pause"
    operation: Operation = PauseScrub(pool=pool.name) if pause else StartScrub.of(pool)
    return start_job(request, operation, reverse("pool", args=[key]))


@require_GET
@refusals_lead_to("pool", "key")
def stop_scrub(request: HttpRequest, key: str) -> HttpResponse:
    """Review stopping a scrub, because its progress is lost."""
    return confirm.review(request, StopScrub(pool=get_pool(key).name), back=reverse("pool", args=[key]))


@require_POST
@refusals_lead_to("pool", "key")
def trim_pool(request: HttpRequest, key: str) -> HttpResponse:
    """Start or stop trimming."""
    pool = get_pool(key)
    stop = request.POST.get("act") == "stop"
    operation: Operation = StopTrim(pool=pool.name) if stop else StartTrim.of(pool)
    return start_job(request, operation, reverse("pool", args=[key]))


# --- schedules ------------------------------------------------------------------------------------------------
class ScheduleForm(forms.Form):
    """How often, between which hours."""

    every = forms.ChoiceField(label=lazy_text("How often?"), choices=EVERY)
    first = forms.TypedChoiceField(label=lazy_text("Not before"), choices=HOURS, coerce=int)
    last = forms.TypedChoiceField(
        label=lazy_text("Begin until"),
        choices=HOURS,
        coerce=int,
        help_text=lazy_text(
            "The same hour twice means at any time. What was missed because the box was off begins during "
            "the next of these hours."
        ),
    )
    inside = forms.BooleanField(
        label=lazy_text("Pause it outside these hours"),
        required=False,
        help_text=lazy_text(
            "The scrub of a large pool then takes several nights. Otherwise it runs until it is done; files "
            "stay available either way."
        ),
    )

    def __init__(self, data: object = None, *, kind: str, initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]  # Django takes a QueryDict here
        if kind != "scrub":
            del self.fields["inside"]


@require_http_methods(["GET", "POST"])
def edit_schedule(request: HttpRequest, key: str, kind: str) -> HttpResponse:
    """When this pool is checked or trimmed automatically. Larder keeps the schedule; nothing on the pool changes."""
    if kind not in maintenance.KINDS:
        raise Http404
    pool = get_pool(key)
    row = maintenance.schedule_row(pool, kind, pool_facts(pool))
    initial: dict[str, object] = {"every": row.every, "first": row.first, "last": row.last, "inside": row.inside}
    form = ScheduleForm(request.POST or None, kind=kind, initial=initial)
    if request.method == "POST" and form.is_valid():
        CareSchedule.objects.update_or_create(
            pool_key=key,
            kind=kind,
            defaults={**form.cleaned_data, "inside": bool(form.cleaned_data.get("inside"))},
        )
        store.touch("schedules")
        messages.success(request, gettext("The schedule of {name} is saved.").format(name=pool.name))
        return redirect("pool", key=key)
    context = {
        "form": form,
        "pool": pool,
        "key": key,
        "kind": kind,
        "what": maintenance.WORDS[kind],
        "now": f"{timezone.now().astimezone(appliance_schedule.box_zone()):%H:%M (%Z)}",
    }
    return live.respond_to_form(request, "pools/schedule.html", context)


SCHEDULED = {"scrub": lazy_text("Scrub {every} {hours}"), "trim": lazy_text("Trim {every} {hours}")}
UNSCHEDULED = {"scrub": lazy_text("No automatic scrub"), "trim": lazy_text("No automatic trim")}


class MaintenanceLine(msgspec.Struct, frozen=True):
    """Scrub or trim on the pool's page."""

    kind: str
    state: str  # running, paused, or empty
    words: str  # how often and when
    next: datetime | None
    can_start: bool
    busy: tuple[Job, ...]  # that are about to change it

    @property
    def next_text(self) -> str:
        """The next start in the box's own time zone, which the schedule is set in."""
        return date_format(self.next, "j F, H:i") if self.next else ""


def maintenance_line(care: maintenance_schedule.Care, kind: str, now: datetime, jobs: Iterable[Job]) -> MaintenanceLine:
    zone = appliance_schedule.box_zone()
    plain = care.schedule
    hours = (
        gettext("at any time")
        if plain.first == plain.last
        else gettext("between {first:02d}:00 and {last:02d}:00").format(first=plain.first, last=plain.last)
    )
    words = {
        "never": "",
        "week": gettext("every week"),
        "month": gettext("every month"),
        "quarter": gettext("every three months"),
    }
    said = SCHEDULED[kind].format(every=words[plain.every], hours=hours) if words[plain.every] else UNSCHEDULED[kind]
    return MaintenanceLine(
        kind,
        care.state,
        said,
        maintenance_schedule.next_start(care, now, zone) if care.usable else None,
        care.usable and care.state != "running",
        tuple(job for job in jobs if job.kind in OWN[kind]),
    )


def checks_context(pool: Pool) -> dict[str, object]:
    """What the card of checks on the pool's page shows, in a constant number of queries."""
    key = str(pool.guid)
    return {
        "activities": list(Activity.objects.filter(pool_key=key, state__in=Activity.UNDER_WAY)),
        "lines": maintenance_lines(pool),
        "reports": [row.report for row in WorkReport.objects.filter(pool_key=key)[:SHOWN]],
    }


def maintenance_lines(pool: Pool) -> dict[str, MaintenanceLine]:
    """Scrub, and trim where the disks support it."""
    facts, now = pool_facts(pool), timezone.now()
    kinds = [kind for kind in maintenance.KINDS if kind == "scrub" or pool.can_trim]
    jobs = list(Job.objects.filter(state__in=Job.OPEN, subject=pool.name).only("id", "title", "kind"))
    return {kind: maintenance_line(maintenance.pool_cares(facts, kind, now)[0][1], kind, now, jobs) for kind in kinds}


def pool_facts(pool: Pool) -> Facts:
    """The facts that the schedules of one pool need: its top folder for its age, the disks for their type."""
    root = tuple(readable_facts(DatasetRow.objects.filter(name=pool.name)))
    return Facts(pools=(pool,), datasets=root, disks=tuple(readable_facts(DiskRow.objects.all())))


# --- what is set on the pool ----------------------------------------------------------------------------------
class PoolSetting(msgspec.Struct, frozen=True):
    """A property of the pool with its words and value."""

    name: str
    words: PoolPropertyWords
    value: str

    @property
    def value_text(self) -> str:
        return text_of(self.words.said.get(self.value, self.value))

    @property
    def opposite(self) -> str:
        return "off" if self.value == "on" else "on"


class CommentForm(forms.Form):
    comment = forms.CharField(
        label=lazy_text("Note"),
        max_length=LONGEST_COMMENT,
        required=False,
        help_text=KNOWN["comment"].meaning,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


@require_http_methods(["GET", "POST"])
@refusals_lead_to("pool_settings", "key")
def pool_settings(request: HttpRequest, key: str) -> HttpResponse:
    """The properties of the pool in plain words, and setting one of them."""
    pool, back = get_pool(key), reverse("pool_settings", args=[key])
    row = PropertiesRow.objects.filter(key=key).first()
    values: dict[str, str] = row.fact.values if row else {}
    form = CommentForm(initial={"comment": values.get("comment", "")})
    if request.method == "POST":
        name = request.POST.get("name", "")
        if name != "comment":
            return set_switch(request, pool, name, request.POST.get("value", ""), back)
        form = CommentForm(request.POST)
        try:
            comment = SetPoolProperty(pool=pool.name, name="comment", value=request.POST.get("comment", ""))
        except Refused as refusal:
            form.full_clean()
            form.add_error("comment", validation_error(refusal.reasons))
        else:
            return start_job(request, comment, back)
    settings = [PoolSetting(name, KNOWN[name], values[name]) for name in KNOWN if name in values]
    context = {
        "pool": pool,
        "key": key,
        "known": row is not None,
        "switches": [
            setting for setting in settings if setting.words.switch and (setting.name != "autotrim" or pool.can_trim)
        ],
        "others": [setting for setting in settings if not setting.words.switch and setting.name != "comment"],
        "form": form,
    }
    return render(request, "pools/settings.html", context, status=400 if form.is_bound else 200)


def set_switch(request: HttpRequest, pool: Pool, name: str, value: str, back: str) -> HttpResponse:
    """Set a property that is on or off; review it first where it cannot be undone later. Raises Refused."""
    if name not in {"autotrim", "autoexpand", "autoreplace"}:
        raise Refused(Reason("property-not-settable", "This property cannot be set here.", field="name"))
    # one of the three above
    operation = SetPoolProperty(pool=pool.name, name=name, value=value)  # type: ignore[arg-type]
    if operation.grave:
        return confirm.review(request, operation, back=back)
    return start_job(request, operation, back)
