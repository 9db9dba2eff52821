"""Stored benchmarks: sweeps, their cases, and the result of each run."""

from __future__ import annotations

import uuid

import msgspec
from django.db import models
from django.utils.translation import gettext

from appliance.benchmarks.case import Case
from appliance.benchmarks.matrix import Sweep
from appliance.benchmarks.results import BenchmarkRun, MeasuredCase
from web.benchmarks.client_models import ClientRunRow as ClientRunRow  # Django looks for models here
from web.said import RowWithMessages
from web.translation import lazy_text


class SweepRow(RowWithMessages):
    """One confirmed sweep. ``workers/benchmarks.py`` advances it one case at a time.

    States: ``queued`` (another sweep uses one of its disks) → ``running`` → ``done`` or ``cancelled``.
    ``pausing`` and ``cancelling`` are requests to the worker. ``paused`` waits for the user; ``text`` says
    why, unless the user paused it.
    """

    class State(models.TextChoices):
        QUEUED = "queued", lazy_text("Waiting")
        RUNNING = "running", lazy_text("Measuring")
        PAUSING = "pausing", lazy_text("Pausing after this case")
        PAUSED = "paused", lazy_text("Paused")
        CANCELLING = "cancelling", lazy_text("Stopping")
        CANCELLED = "cancelled", lazy_text("Stopped")
        DONE = "done", lazy_text("Done")

    ACTIVE = (State.RUNNING, State.PAUSING, State.CANCELLING)
    OPEN = (State.QUEUED, *ACTIVE, State.PAUSED)

    TEXTS = ("text",)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    title = models.CharField(max_length=200)
    preset = models.CharField(max_length=30, default="")
    spec = models.TextField()
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED, db_index=True)
    text = models.TextField(default="")
    versions = models.TextField(default="")
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created",)

    def __str__(self) -> str:
        return self.title

    @property
    def sweep(self) -> Sweep:
        return msgspec.json.decode(self.spec, type=Sweep)

    @property
    def open(self) -> bool:
        return self.state in self.OPEN

    def claimed_resources(self) -> set[str]:
        """Disks, pools and the network, which no other sweep may use at the same time. A sample's pool counts too."""
        sweep = self.sweep
        return {
            *sweep.all_disks,
            *filter(None, [sweep.pool, sweep.sample.split("/")[0], "network" if sweep.where == "network" else ""]),
        }

    def is_held(self) -> bool:
        """Whether an active or paused sweep has something that this one needs. One whose cases cannot be decoded has
        nothing: the agent checks each disk itself as well."""
        others = SweepRow.objects.filter(state__in=(*self.ACTIVE, self.State.PAUSED)).exclude(pk=self.pk)
        return any(self.claimed_resources() & other.resources_or_none() for other in others)

    def resources_or_none(self) -> set[str]:
        try:
            return self.claimed_resources()
        except msgspec.MsgspecError:
            return set()


class CaseRow(RowWithMessages):
    """One case. ``job`` is the job that runs it, or while ``clearing``, the job that cleans up after it."""

    class State(models.TextChoices):
        WAITING = "waiting", lazy_text("Waiting")
        RUNNING = "running", lazy_text("Measuring")
        CLEARING = "clearing", lazy_text("Clearing up")
        DONE = "done", lazy_text("Done")
        FAILED = "failed", lazy_text("Could not be measured")

    TEXTS = ("text",)

    sweep = models.ForeignKey(SweepRow, on_delete=models.CASCADE, related_name="cases")
    number = models.PositiveSmallIntegerField()
    spec = models.TextField()
    workload = models.CharField(max_length=20, default="")  # as in the case, and so the next
    pool = models.CharField(max_length=255, default="")
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    job = models.UUIDField(null=True)
    token = models.CharField(max_length=12, default="")
    ended = models.CharField(max_length=12, default="")  # how the job ended that is being cleaned up
    attempts = models.PositiveSmallIntegerField(default=0)
    text = models.TextField(default="")
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=["sweep", "number"], name="one_case_each"),)

    def __str__(self) -> str:
        return gettext("case {number} of {sweep_id}").format(number=self.number, sweep_id=self.sweep_id)

    @property
    def case(self) -> Case:
        return msgspec.json.decode(self.spec, type=Case)

    @property
    def seconds(self) -> float:
        """Seconds it took; 0 until it has ended."""
        return (self.finished - self.started).total_seconds() if self.started and self.finished else 0.0

    @property
    def measured(self) -> MeasuredCase:
        """The case with its runs, for tables. Reads ``results``, so prefetch them."""
        runs = tuple(result.run for result in self.results.all())
        state = "running" if self.state == self.State.CLEARING else str(self.state)
        return MeasuredCase(self.number, self.case, runs, state, self.text if self.state == self.State.FAILED else "")


class ResultRow(models.Model):
    """One run, as the agent reported it (``appliance/benchmarks/results.py``)."""

    case = models.ForeignKey(CaseRow, on_delete=models.CASCADE, related_name="results")
    number = models.PositiveSmallIntegerField()
    told = models.TextField()

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=["case", "number"], name="one_result_each"),)

    def __str__(self) -> str:
        return gettext("run {number} of {case_id}").format(number=self.number, case_id=self.case_id)

    @property
    def run(self) -> BenchmarkRun:
        return msgspec.json.decode(self.told, type=BenchmarkRun)
