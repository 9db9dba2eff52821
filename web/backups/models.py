"""What is remembered of each backup: the inventory knows only the pools that are connected."""

from __future__ import annotations

from typing import Any

from django.db import models

from appliance.formatting import and_more
from web.translation import text_of


class BackupRecord(models.Model):
    """A task of a dataset. ``good``: the moment of the newest complete copy;
    ``since``: when the task was first seen."""

    dataset_key = models.CharField(max_length=20)
    task = models.CharField(max_length=8)
    since = models.DateTimeField()
    good = models.DateTimeField(null=True)
    pool_name = models.CharField(max_length=255, default="")
    # The last comparison with the originals: when, how much of it, what was different.
    compared = models.DateTimeField(null=True)
    files = models.PositiveBigIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)  # bytes that were read on both sides
    total = models.PositiveBigIntegerField(default=0)  # of all files
    turn = models.PositiveSmallIntegerField(default=0)  # the part that comes next
    different = models.PositiveIntegerField(default=0)
    differences: Any = models.JSONField(default=list)  # the first of them
    skipped: Any = models.JSONField(default=list)  # folders that could not be compared
    more_skipped = models.PositiveIntegerField(default=0)  # of them that are not named
    proof: Any = models.JSONField(default=dict)  # the other checks: ``proof.Proof``
    seen = models.DateTimeField(null=True)  # when the destination was last connected, to within some hours

    class Meta:
        constraints = (models.UniqueConstraint(fields=["dataset_key", "task"], name="backup_once"),)

    def __str__(self) -> str:
        return f"{self.dataset_key} {self.task}"

    @property
    def left_out(self) -> str:
        """What could not be compared, in words; empty where everything was."""
        return text_of(and_more(self.skipped, self.more_skipped))
