"""Facts of datasets, their snapshots and bookmarks as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, ClassVar

from django.db import models

from appliance.facts import user_properties
from appliance.facts.datasets import Bookmark, Dataset, DatasetDetail, Snapshot
from web.inventory.fact_row import Row

SOURCES = ("share_source", "policy_source", "backup_source", "access_source")


class DatasetRow(Row):
    """``key`` is the dataset's guid. ``type`` is what the fact calls ``kind``;
    ``is_test``: a test of a restore has made it."""

    kind = Dataset
    pool = models.CharField(max_length=255, db_index=True)
    type = models.CharField(max_length=10, default="filesystem")
    mountpoint = models.TextField(default="")
    locked = models.BooleanField(default=False)
    encryption_root = models.CharField(max_length=300, default="")
    is_copy = models.BooleanField(default=False)
    is_test = models.BooleanField(default=False)
    share_source = models.CharField(max_length=10, default="none")
    policy_source = models.CharField(max_length=10, default="none")
    backup_source = models.CharField(max_length=10, default="none")
    access_source = models.CharField(max_length=10, default="none")

    columns: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        **{name: attrgetter(name) for name in ("pool", "mountpoint", "locked", "encryption_root", *SOURCES)},
        "type": attrgetter("kind"),
        "is_copy": lambda fact: bool(fact.copy_of),
        "is_test": lambda fact: user_properties.DRILL in fact.properties,
    }


class DatasetDetailRow(Row):
    """What is read of a dataset when somebody looks closer. ``key`` is its guid."""

    kind = DatasetDetail


class DatasetRelated(models.Model):
    """A moment of a dataset that has a name and a guid; ``mark`` stands between the dataset's name and its own."""

    mark: ClassVar[str]
    dataset_key = models.CharField(max_length=20)
    dataset = models.CharField(max_length=255)
    short = models.CharField(max_length=255)
    guid = models.CharField(max_length=20)
    txg = models.PositiveBigIntegerField()
    created = models.DateTimeField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return f"{self.dataset}{self.mark}{self.short}"


class SnapshotRow(DatasetRelated):
    """A snapshot. Not a ``Row``: there are a hundred thousand of them, so each column stands
    once and pages read an index.

    A snapshot keeps its guid when it is sent, so two datasets may have the same one.
    """

    mark = "@"
    used = models.PositiveBigIntegerField(default=0)
    referenced = models.PositiveBigIntegerField(default=0)
    written = models.PositiveBigIntegerField(default=0)
    holds = models.PositiveIntegerField(default=0)
    clones = models.TextField(default="")
    run = models.CharField(max_length=36, default="")
    note = models.CharField(max_length=1000, default="")

    class Meta:
        constraints = (models.UniqueConstraint(fields=["dataset_key", "guid"], name="snapshot_once"),)
        indexes = (
            models.Index(fields=["dataset_key", "created", "id"], name="snapshots_of_dataset"),
            models.Index(fields=["created", "id"], name="snapshots_of_all"),
            models.Index(fields=["dataset"], name="snapshots_by_name"),
            models.Index(fields=["short", "id"], name="snapshots_by_short"),
            models.Index(fields=["used", "id"], name="snapshots_by_size"),
            models.Index(fields=["created", "id"], condition=~models.Q(run=""), name="snapshots_of_policies"),
            models.Index(fields=["created", "id"], condition=models.Q(run=""), name="snapshots_by_hand"),
            models.Index(fields=["created", "id"], condition=models.Q(holds__gt=0), name="snapshots_held"),
        )

    @property
    def fact(self) -> Snapshot:
        return Snapshot(
            name=self.name,
            guid=int(self.guid),
            txg=self.txg,
            created=self.created,
            used=self.used,
            referenced=self.referenced,
            written=self.written,
            holds=self.holds,
            clones=tuple(filter(None, self.clones.split(","))),
            run=self.run,
            note=self.note,
        )


class BookmarkRow(DatasetRelated):
    """A bookmark. ``guid`` is that of its snapshot: there may be several of one."""

    mark = "#"

    class Meta:
        constraints = (models.UniqueConstraint(fields=["dataset_key", "short"], name="bookmark_once"),)
        indexes = (models.Index(fields=["dataset"], name="bookmarks_by_name"),)

    @property
    def fact(self) -> Bookmark:
        return Bookmark(name=self.name, guid=int(self.guid), txg=self.txg, created=self.created)


class SnapshotReading(models.Model):
    """How a dataset's snapshots stood when they were last read. ``stamp`` is what moves when they change."""

    dataset_key = models.CharField(max_length=20, primary_key=True)
    dataset = models.CharField(max_length=255)
    stamp = models.CharField(max_length=80, default="")
    at = models.DateTimeField(db_index=True)
    count = models.PositiveIntegerField(default=0)
    used = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.dataset
