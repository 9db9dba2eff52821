"""Jobs: every change to the box, from the moment it was confirmed."""

from __future__ import annotations

import json
import uuid
from functools import cached_property
from typing import Any

from django.db import models

from web.said import RowWithMessages
from web.translation import lazy_text

# Who makes a job where nobody confirmed it; stored in ``created_by``.
BY_SCHEDULE, BY_SNAPSHOT_SCHEDULE, BY_BENCHMARK = "the schedule", "the snapshot policy", "the measurement"
AUTOMATIC = {
    BY_SCHEDULE: lazy_text("the schedule"),
    BY_SNAPSHOT_SCHEDULE: lazy_text("the snapshot schedule"),
    BY_BENCHMARK: lazy_text("the measurement"),
}


class Job(RowWithMessages):
    """One confirmed operation. The row is the truth, the queue only carries its id.

    States: ``queued`` → ``running`` (→ ``waiting`` until ``starts``, where it needs a proof and has none) → ``done``,
    ``failed`` (a step failed), ``refused`` (nothing was changed), ``cancelled`` (the person stopped it between steps)
    or ``interrupted`` (a crash or power cut; the text says after which step and what to do). A job goes to ``running``
    by a conditional update with the worker's own token, so two workers never both have it. Nothing leaves an end state.
    """

    class State(models.TextChoices):
        QUEUED = "queued", lazy_text("Waiting")
        RUNNING = "running", lazy_text("Working")
        WAITING = "waiting", lazy_text("Waiting for its start")
        DONE = "done", lazy_text("Done")
        FAILED = "failed", lazy_text("Failed")
        REFUSED = "refused", lazy_text("Refused")
        CANCELLED = "cancelled", lazy_text("Stopped")
        INTERRUPTED = "interrupted", lazy_text("Interrupted")

    OPEN = (State.QUEUED, State.RUNNING, State.WAITING)

    BAD_ENDS = (State.FAILED, State.REFUSED, State.INTERRUPTED)

    TEXTS = ("title", "text", "plan", "log")

    @property
    def made_by(self) -> str:
        """Who made it, in the language of the reader."""
        return AUTOMATIC.get(self.created_by, self.created_by)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=60)
    title = models.CharField(max_length=300)
    subject = models.CharField(max_length=300, db_index=True)
    operation = models.TextField()
    backup = models.CharField(max_length=20, default="")  # the key of the backup that it works on
    digest = models.CharField(max_length=64)
    plan_seen = models.BooleanField(default=True)  # a person has confirmed this very plan, so no other one may run
    plan = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED, db_index=True)
    text = models.TextField(default="")
    done = models.JSONField(default=list)
    log = models.JSONField(default=list)
    created = models.DateTimeField(auto_now_add=True, db_index=True)
    created_by = models.CharField(max_length=150)
    started = models.DateTimeField(null=True)
    starts = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)
    worker = models.CharField(max_length=60, default="")
    acknowledged = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created",)

    def __str__(self) -> str:
        return self.title

    @cached_property
    def fields(self) -> dict[str, Any]:
        """What its operation says, by field, as JSON."""
        found: dict[str, Any] = json.loads(self.operation)
        return found

    @property
    def open(self) -> bool:
        return self.state in self.OPEN

    @property
    def needs_attention(self) -> bool:
        """Ended other than well, and nobody has said that they saw it."""
        return self.acknowledged is None and self.state in self.BAD_ENDS

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The plan's steps with what became of each, for the page. Commands are stored under ``shown``."""
        return [
            {
                **step,
                "command_text": step.get("shown", ""),
                "done": step["name"] in self.done or self.state == self.State.DONE,
            }
            for step in self.plan.get("steps", [])
        ]
