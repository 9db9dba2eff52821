"""What the owner says of the bays, the replacements that are under way, and the burn-ins of disks.
All belong to the box, not to a pool."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.db import models
from django.utils.translation import gettext

from appliance.burn_in.regions import Region, RegionResult, split_disk
from appliance.message import Message, join_messages
from web.said import RowWithMessages
from web.translation import lazy_text, text_of


class BayRow(models.Model):
    """A bay, known by the port behind it. Made when a disk is first seen there; the owner may label and order it."""

    port = models.CharField(max_length=200, unique=True)
    position = models.PositiveSmallIntegerField()
    label = models.CharField(max_length=20, blank=True, default="")

    class Meta:
        ordering = ("position", "pk")

    def __str__(self) -> str:
        return self.label or str(self.position)


class Replacement(RowWithMessages):
    """A disk that is being replaced. Where it stands is read from the facts; here is only what they cannot tell later:
    which disk it was, where it sat, which disks and vdevs were there when it began, and which one took its place. Guids
    are text: they have 64 bits without a sign.
    """

    TEXTS = ("bay", "known", "report")

    pool = models.CharField(max_length=255)
    pool_guid = models.CharField(max_length=20, db_index=True)
    vdev_guid = models.CharField(max_length=20)
    disk = models.CharField(max_length=300)
    serial = models.CharField(max_length=300, blank=True, default="")
    model = models.CharField(max_length=300, blank=True, default="")
    bay = models.CharField(max_length=40, blank=True, default="")
    known = models.JSONField(default=dict)  # {disk key: "bay 2 (model, serial)"} of disks that pools use
    guids = models.JSONField(default=list)  # of every device of the pool
    new_guid = models.CharField(max_length=20, blank=True, default="")  # of the new device, once it was seen
    begun = models.DateTimeField(auto_now_add=True)
    begun_by = models.CharField(max_length=150)
    closed = models.DateTimeField(null=True)
    report = models.TextField(default="")

    class Meta:
        ordering = ("-begun",)
        constraints = (
            models.UniqueConstraint(
                fields=["pool_guid", "vdev_guid"], condition=models.Q(closed=None), name="one_open_replacement"
            ),
        )

    def __str__(self) -> str:
        return gettext("{disk} of {pool}").format(disk=self.disk, pool=self.pool)

    @property
    def named(self) -> str:
        """``bay 3 (WDC WD20EARS, serial WD-1)``, as a message."""
        serial = Message("serial {serial}", serial=self.serial) if self.serial else ""
        what = join_messages([self.model, serial], ", ") or self.disk
        return Message("{bay} ({disk})", bay=self.bay, disk=what) if self.bay else what

    @property
    def name(self) -> str:
        """The same in the language of the reader."""
        return text_of(self.named)


class BurnIn(RowWithMessages):
    """The burn-in of one disk, known by its serial number. ``workers/burn_in.py`` carries it on, a job at a time.

    States: ``running`` → ``done`` or ``stopped``. ``pausing`` and ``stopping`` are requests to the worker. ``paused``
    waits for the user; ``text`` says why, unless the user paused it. Stages: ``short`` and ``long`` (self-tests),
    ``write`` (only if ``writes``), ``last`` (the drive's figures once more).
    """

    class State(models.TextChoices):
        RUNNING = "running", lazy_text("Running")
        PAUSING = "pausing", lazy_text("Pausing")
        PAUSED = "paused", lazy_text("Paused")
        STOPPING = "stopping", lazy_text("Stopping")
        STOPPED = "stopped", lazy_text("Stopped")
        DONE = "done", lazy_text("Done")

    ACTIVE = (State.RUNNING, State.PAUSING, State.STOPPING)
    OPEN = (*ACTIVE, State.PAUSED)
    SELF_TESTS = ("short", "long")

    TEXTS = ("text", "tests", "findings")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    disk = models.CharField(max_length=300)  # its key in the inventory
    path = models.CharField(max_length=300)
    serial = models.CharField(max_length=300, db_index=True)
    model = models.CharField(max_length=300, blank=True, default="")
    size = models.BigIntegerField()
    rotational = models.BooleanField(default=True)
    writes = models.BooleanField(default=False)
    rate = models.BigIntegerField(default=0)  # bytes a second, 0: no limit
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING, db_index=True)
    stage = models.CharField(max_length=10, default="short")
    text = models.TextField(default="", blank=True)
    job = models.UUIDField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)  # of the same step, without a result
    wanted = models.DateTimeField(null=True)  # a reading from after this moment is waited for
    # The newest: {"at", "asleep", "counts", "passed", "tests", "testing", "left", "able", …}; "asked": of a later
    # one in vain.
    reading = models.JSONField(default=dict)
    before = models.JSONField(default=dict)  # the first one that was not taken asleep
    log = models.JSONField(default=list)  # the drive's log of self-tests when the last one began
    tests = models.JSONField(default=dict)  # by kind: {"passed", "text"}
    results = models.JSONField(default=list)  # of each region that was tested
    temperatures = models.JSONField(default=list)  # [minutes since the beginning, °C]
    verdict = models.CharField(max_length=10, default="", blank=True)  # clean, watch, failed; empty until it is done
    findings = models.JSONField(default=list)  # [state, text] of each
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150)
    finished = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created",)
        constraints = (
            models.UniqueConstraint(
                fields=["serial"],
                condition=models.Q(state__in=["running", "pausing", "paused", "stopping"]),
                name="one_open_burn_in",
            ),
        )

    def __str__(self) -> str:
        return gettext("burn-in of {serial}").format(serial=self.serial)

    @property
    def open(self) -> bool:
        return self.state in self.OPEN

    @property
    def read_at(self) -> datetime | None:
        """When the newest reading was taken."""
        told = self.reading.get("at")
        return datetime.fromisoformat(told) if told else None

    @property
    def is_fresh(self) -> bool:
        """Whether the newest reading is the one that is waited for."""
        at = self.read_at
        return at is not None and self.wanted is not None and at > self.wanted

    @property
    def is_testing(self) -> bool:
        """Whether a self-test runs; False also where nobody knows because the disk is not asked."""
        known = self.state in self.ACTIVE and self.stage in self.SELF_TESTS and self.is_fresh
        return known and (bool(self.reading.get("testing")) or self.reading.get("left") is not None)

    @property
    def left(self) -> int | None:
        """Per cent of the running self-test that are left;
        None where the disk does not report it, and where none runs."""
        return self.reading.get("left") if self.is_testing else None

    @property
    def name(self) -> str:
        """``WDC WD20EARS, serial WD-1``."""
        return gettext("{model}, serial {serial}").format(model=self.model or gettext("Disk"), serial=self.serial)

    @property
    def regions(self) -> Sequence[Region]:
        return split_disk(self.size)

    @property
    def tested(self) -> list[RegionResult]:
        return msgspec.convert(self.results, list[RegionResult])
