"""Facts as rows. Collectors write them, pages read them, nobody edits them; all are rebuilt at every boot.

Each row keeps the whole fact as JSON (``facts``) beside the few columns that pages filter and sort by.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from appliance.facts import box, sharing
from appliance.facts.file_import import FileImport
from appliance.facts.importable import Importable
from appliance.facts.receiver import Receiver
from appliance.facts.remote import Remote
from appliance.message import Message
from appliance.pools import progress
from appliance.shares import connections
from appliance.shares.drift import detect
from appliance.shares.iscsi.divergence import TargetEdit
from appliance.shares.troubleshoot import diagnosis
from appliance.system.box_info import BoxInfo
from web.inventory import dataset_models  # noqa: F401 (Django looks for models here)
from web.inventory.fact_row import Row, RowWithSaidFacts
from web.said import RowWithMessages


class PoolRow(Row):
    """``key`` is the pool's guid. ``troubled``: when what was read of it last showed a sign of trouble."""

    kind = box.Pool
    troubled = models.DateTimeField(null=True)


class PropertiesRow(Row):
    """What is set on a pool. ``key`` is the pool's guid."""

    kind = box.PoolProperties


class DiskRow(RowWithMessages, RowWithSaidFacts):
    """``key`` is the last part of the by-id path, or today's kernel name where there is none."""

    TEXTS = ("smart_text", "reasons")
    kind = box.Disk
    temperature = models.SmallIntegerField(null=True)
    asleep = models.BooleanField(default=False)
    smart_passed = models.BooleanField(null=True)
    smart_text = models.CharField(max_length=500, default="")  # empty: not asked yet
    verdict = models.CharField(
        max_length=10, default=""
    )  # healthy, watch, failing, unknown; the last known while it sleeps
    reasons = models.JSONField(default=list)  # [state, text, count, value] of each
    latency = models.FloatField(null=True)  # ms for a request between the last two looks; null: too few to tell
    reading = models.JSONField(
        default=dict
    )  # of the last answer: {"counts", "hours", "errors", "tests", "testing", "left"}

    @property
    def label(self) -> str:
        """It names model and serial number, where ``name`` is only what the kernel calls the disk today."""
        return self.key


class ServiceRow(Row):
    """``key`` is the unit."""

    kind = box.Service


class ShareRow(Row):
    """``key`` is protocol and name, in small letters."""

    kind = sharing.Share


class AccountRow(Row):
    """``key`` is the account's name."""

    kind = sharing.Account


class GroupRow(Row):
    """``key`` is the group's name."""

    kind = sharing.Group


class CachingRow(Row):
    """One row, ``key`` is "box": what ZFS has counted since the start."""

    kind = box.Caching


class ImportableRow(Row):
    """A pool that could be imported, as of the last look. ``key`` is its guid."""

    kind = Importable


class DetailRow(Row):
    """What is read of a pool before it ends. ``key`` is the pool's guid."""

    kind = box.PoolDetail


class SessionRow(Row):
    """Who has a share open. ``key`` is all of it."""

    kind = sharing.Session


class SeenRow(RowWithMessages, Row):
    """What was found of a share when somebody asked why it cannot be seen. ``key`` is made by ``key_of``.

    ``requested``: when it was last asked; ``ended``: as of when the last answer or error is;
    ``error``: why there was no answer. What was found before stays then: ``checked`` is as of when that is.
    """

    TEXTS = ("error",)
    kind = diagnosis.Diagnosis
    requested = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    checked = models.DateTimeField(null=True)
    error = models.TextField(default="")

    def decode(self) -> Any:
        """What was found; None while nothing was."""
        return super().decode() if self.facts else None

    @staticmethod
    def key_of(dataset: str, protocol: str, person: str) -> str:
        """The key of what was found; ``dataset`` is the dataset's guid, ``person`` may be empty."""
        return f"{dataset}:{protocol}:{person}"


class PolicyRow(Row):
    """One row, ``key`` is "smb": how SMB is protected."""

    kind = sharing.SmbPolicy


class ConnectionRow(RowWithSaidFacts):
    """A client that was connected at the last look. ``key`` is protocol and number."""

    kind = connections.Connection


class BoxRow(Row):
    """The box itself: one row. ``rates``: bytes a second received and sent now, by network port;
    ``disk_rates``: read and written now by all disks together; empty: not known."""

    kind = BoxInfo
    rates: Any = models.JSONField(default=dict)
    disk_rates: Any = models.JSONField(default=list)

    @property
    def label(self) -> str:
        return Message("this box")


class RemoteRow(Row):
    """Another computer that backups go to. ``key`` is its id."""

    kind = Remote


class ReceiverRow(Row):
    """Another Larder whose backups come here. ``key`` is its id."""

    kind = Receiver


class ImportRow(Row):
    """An import of files from another NAS. ``key`` is its id."""

    kind = FileImport


class EditRow(RowWithSaidFacts):
    """A file of Larder's that was changed by hand, or of which earlier versions are kept. ``key`` names the file."""

    kind = detect.Edit


class TargetEditRow(Row):
    """An iSCSI target that was changed by hand. ``key`` is made of its name."""

    kind = TargetEdit


class Source(RowWithMessages):
    """One thing that collectors read: when it was last read, whether that worked, and how often it has changed."""

    TEXTS = ("error",)

    name = models.CharField(max_length=40, primary_key=True)
    checked = models.DateTimeField(null=True)
    requested = models.DateTimeField(null=True)
    error = models.TextField(default="")
    version = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0)

    def __str__(self) -> str:
        return self.name


class Activity(RowWithMessages):
    """Long work of the kernel, started here or elsewhere (``appliance/pools/progress.py``). ``left`` is in
    seconds, null while unknown; ``samples`` are what the pace is calculated from. Rows of ended work stay
    as long as ZFS reports it."""

    TEXTS = ("phrase",)

    key = models.CharField(max_length=120, primary_key=True)
    pool = models.CharField(max_length=255)
    pool_key = models.CharField(max_length=40, default="", db_index=True)
    kind = models.CharField(max_length=20)
    state = models.CharField(max_length=20)
    percent = models.PositiveSmallIntegerField(default=0)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    seen = models.DateTimeField()
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)
    rate = models.FloatField(default=0)
    left = models.PositiveIntegerField(null=True)
    phrase = models.CharField(max_length=120, default="")
    subject = models.CharField(max_length=255, default="")
    settled = models.BooleanField(default=False)  # its end was seen more than once
    samples = models.TextField(default="[]")

    UNDER_WAY = ("running", "paused", "waiting")

    def __str__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        return progress.work_title(self.kind, self.pool)

    @property
    def under_way(self) -> bool:
        return self.state in self.UNDER_WAY


class Progress(RowWithMessages):
    """How far a job is. It changes often, so it lives here and not on the system disk."""

    TEXTS = ("phrase",)

    job = models.UUIDField(primary_key=True)
    percent = models.PositiveSmallIntegerField(default=0)
    phrase = models.CharField(max_length=300, default="")
    waits = models.BooleanField(default=False)  # for another job, which holds what this one needs
    speeds = models.JSONField(default=list)  # of a measurement: bytes a second read and written, a pair a reading
    changed = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.percent} %"


class Event(models.Model):
    """Something that smartd or ZED said, as it came out of the spool."""

    file = models.CharField(max_length=120, unique=True)
    source = models.CharField(max_length=20)
    kind = models.CharField(max_length=120)
    subject = models.CharField(max_length=255, default="")
    received = models.DateTimeField()
    fields = models.JSONField(default=dict)

    class Meta:
        ordering = ("-received", "-pk")

    def __str__(self) -> str:
        return f"{self.source} {self.kind}"


class HistoryLine(models.Model):
    """A line of a pool's history, as it was read when somebody last looked at it. ``number`` counts from the oldest."""

    pool_key = models.CharField(max_length=40)
    number = models.PositiveIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=20)
    text = models.TextField()
    by = models.CharField(max_length=120, default="")

    class Meta:
        ordering = ("-number",)
        indexes = (models.Index(fields=["pool_key", "number"], name="history_of_pool"),)

    def __str__(self) -> str:
        return self.text
