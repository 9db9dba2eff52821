"""Stored reports of long work on pools, and scrub and trim schedules."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext

from appliance.pools.work_reports import Report, Wear
from appliance.schedule import Schedule
from web.said import RowWithMessages
from web.translation import text_of


class WorkReport(models.Model):
    """How one scrub, resilver or other long work ended; written once, when its end is first seen.

    ``key`` identifies the work across reboots (``appliance/pools/progress.py``), so that it gets one report.
    """

    key = models.CharField(max_length=120, primary_key=True)
    pool_key = models.CharField(max_length=40, db_index=True)
    pool = models.CharField(max_length=255)
    kind = models.CharField(max_length=20)
    outcome = models.CharField(max_length=20)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    looked = models.PositiveBigIntegerField(default=0)
    repaired = models.PositiveBigIntegerField(default=0)
    errors = models.PositiveBigIntegerField(default=0)
    damaged = models.PositiveIntegerField(default=0)
    files = models.JSONField(default=list)
    wear = models.JSONField(default=list)
    subject = models.CharField(max_length=255, default="")
    written = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-written", "key")

    def __str__(self) -> str:
        return gettext("{kind} of {pool}").format(kind=self.kind, pool=self.pool)

    @property
    def report(self) -> Report:
        """The report as a value, which renders the text."""
        return Report(
            self.kind,
            self.outcome,
            self.started,
            self.ended,
            self.looked,
            self.repaired,
            self.errors,
            self.damaged,
            tuple(str(name) for name in self.files),
            tuple(Wear(*wear) for wear in self.wear),
            self.subject,
        )


class CareSchedule(models.Model):
    """When one pool is scrubbed or trimmed. Without a row the default applies (``web/pools/maintenance.py``)."""

    pool_key = models.CharField(max_length=40)
    kind = models.CharField(max_length=10)  # scrub, trim
    every = models.CharField(max_length=10)
    first = models.PositiveSmallIntegerField()
    last = models.PositiveSmallIntegerField()
    inside = models.BooleanField(default=False)
    tried = models.DateTimeField(null=True)  # when the schedule itself last began one
    held = models.CharField(max_length=120, default="")  # the key of the scrub that the schedule paused

    class Meta:
        constraints = (models.UniqueConstraint(fields=["pool_key", "kind"], name="one_schedule_each"),)

    def __str__(self) -> str:
        return gettext("{kind} of {pool_key}").format(kind=self.kind, pool_key=self.pool_key)

    @property
    def schedule(self) -> Schedule:
        values: dict[str, Any] = {"every": self.every, "first": self.first, "last": self.last, "inside": self.inside}
        return Schedule(**values)


class DiskPrice(models.Model):
    """What the owner pays for disks: one row. Without a price no page shows money."""

    per_tb = models.DecimalField(max_digits=9, decimal_places=2, null=True)
    currency = models.CharField(max_length=5, default="")

    def __str__(self) -> str:
        return f"{self.per_tb} {self.currency}" if self.per_tb is not None else gettext("no price")

    @classmethod
    def load_row(cls) -> DiskPrice:
        return cls.objects.filter(pk=1).first() or cls(pk=1)


class GrowthPlan(RowWithMessages):
    """The plan to replace disks of a pool by larger ones, one after the other. How far it is, ZFS
    tells (``appliance/pools/growth_plan.py``); ``moved`` is when that last changed, so that a plan
    that stands still is noticed."""

    TEXTS = ("targets", "replaced", "outcome")

    pool_guid = models.CharField(max_length=20, db_index=True)
    pool = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField()  # of the new disks
    targets = models.JSONField(default=list)  # guids as text, and what the disk was called: [["123", "bay 1 (…)"], …]
    # Which disk sat where at the last look (``growth_plan.read_seats``), and which took whose place since: guids as
    # text of the old and the new one, what the new one is called, and when that was seen, in seconds since 1970.
    seats = models.JSONField(default=dict)
    replaced = models.JSONField(default=list)  # [["123", "456", "bay 1 (…)", 1790000000], …]
    done = models.PositiveSmallIntegerField(default=0)
    moved = models.DateTimeField()
    begun = models.DateTimeField()
    begun_by = models.CharField(max_length=150)
    ended = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=400, default="")

    class Meta:
        ordering = ("-begun", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=["pool_guid"], condition=models.Q(ended=None), name="one_open_plan_to_grow_a_pool"
            ),
        )

    def __str__(self) -> str:
        return gettext("larger disks for {pool}").format(pool=self.pool)

    @property
    def guids(self) -> tuple[int, ...]:
        return tuple(int(guid) for guid, _label in self.targets)

    def label_of(self, guid: int) -> str:
        """What the disk was called when the plan was made, or when it came."""
        came = [(new, label) for _old, new, label, _at in self.replaced]
        return next((text_of(label) for own, label in (*self.targets, *came) if own == str(guid)), gettext("a disk"))
