"""The record of what this box's schedules took. They may destroy only snapshots recorded here by guid."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db import models

from appliance.system.clock import Clock


class PolicyRun(models.Model):
    """A requested run, stored before anything is taken. ``targets``: dataset key to short name and grains.

    Each snapshot of the run carries the run's id, set in the transaction that takes it. So even after an interruption,
    the snapshots are recognised by their run as soon as they are read.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    asked = models.DateTimeField(auto_now_add=True, db_index=True)
    pool = models.CharField(max_length=255)
    targets: models.JSONField[Any, Any] = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.pool} {self.asked}"


class MadeSnapshot(models.Model):
    """A snapshot that a run took, by the guids of its dataset and its own; ``grains`` are separated by commas.

    ``until``: when it last got grains because nothing had changed since; it serves the slots of that moment too.
    """

    dataset_key = models.CharField(max_length=20)
    guid = models.CharField(max_length=20)
    grains = models.CharField(max_length=60)
    until = models.DateTimeField(null=True)
    at = models.DateTimeField(null=True)  # when it was taken, if the clock was in doubt at that time

    class Meta:
        constraints = (models.UniqueConstraint(fields=["dataset_key", "guid"], name="made_once"),)

    def __str__(self) -> str:
        return f"{self.dataset_key} {self.guid}"


class ClockRow(models.Model):
    """The state of the clock when it was last read, in one row (``appliance/system/clock.py``)."""

    boot = models.CharField(max_length=40)
    running = models.FloatField()
    wall = models.DateTimeField()
    shift = models.DurationField(default=timedelta())
    since = models.FloatField(default=0.0)

    def __str__(self) -> str:
        return f"{self.wall} {self.shift}"

    @property
    def clock(self) -> Clock:
        return Clock(self.boot, self.running, self.wall, self.shift, self.since)
