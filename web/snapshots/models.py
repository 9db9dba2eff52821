"""What the policies of this box have made. Only what stands here, by its guid, may they destroy again."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db import models

from appliance.system.clock import Clock


class PolicyRun(models.Model):
    """A run that was asked for: written before anything is taken. ``targets``: dataset key to short name and grains.

    Each snapshot of the run carries its id, set in the same transaction that took it. So whatever is interrupted in
    between, the snapshots are known by their run as soon as they are seen.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    asked = models.DateTimeField(auto_now_add=True, db_index=True)
    pool = models.CharField(max_length=255)
    targets: models.JSONField[Any, Any] = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.pool} {self.asked}"


class MadeSnapshot(models.Model):
    """A snapshot that a run made, by the guids of its dataset and its own; ``grains`` in one word with commas.

    ``until``: when it last got grains because nothing had changed since; it stands for the slots of that moment too.
    """

    dataset_key = models.CharField(max_length=20)
    guid = models.CharField(max_length=20)
    grains = models.CharField(max_length=60)
    until = models.DateTimeField(null=True)
    at = models.DateTimeField(null=True)  # when it was taken, where the clock was in doubt just then

    class Meta:
        constraints = (models.UniqueConstraint(fields=["dataset_key", "guid"], name="made_once"),)

    def __str__(self) -> str:
        return f"{self.dataset_key} {self.guid}"


class ClockRow(models.Model):
    """One row: how the clock was at the last look (``appliance/system/clock.py``)."""

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
