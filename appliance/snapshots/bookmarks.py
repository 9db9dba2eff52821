"""Bookmarks: points in time of a dataset without its files. Read, make and destroy them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from appliance import names
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Bookmark
from appliance.message import Message
from appliance.operation import Loss, Plan, Step, always, never
from appliance.snapshots.hold_clone import SnapshotOperation
from appliance.snapshots.take import SnapshotsOperation
from appliance.zfs import libzfs, list_snapshots
from appliance.zfs.scan_status import parse_time
from appliance.zfs.status import parse_whole

COLUMNS = "name,guid,createtxg,creation"


def bookmarks_from(listing: Mapping[str, Any]) -> Iterator[Bookmark]:
    """The bookmarks in the object that ``zfs list -j -p -t bookmark`` prints for COLUMNS."""
    for name, raw in (listing.get("datasets") or {}).items():
        values = {key: parse_whole(column.get("value")) for key, column in (raw.get("properties") or {}).items()}
        yield Bookmark(
            name=str(name),
            guid=values.get("guid", 0),
            txg=values.get("createtxg", 0),
            created=parse_time(values.get("creation", 0)) or datetime.fromtimestamp(0, UTC),
        )


def read_bookmarks(datasets: Iterable[str]) -> Iterator[Bookmark]:
    """The bookmarks of these datasets, without those below them. Missing datasets are skipped. Raises Failed."""
    for listing in list_snapshots.list_in_batches(datasets, "bookmark", COLUMNS):
        yield from bookmarks_from(listing)


class BookmarkSnapshot(SnapshotOperation, tag="bookmark-snapshot"):
    """Bookmark a snapshot, so that a backup can continue from its moment after the snapshot is destroyed."""

    needs_proof = never

    name: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.check_snapshot_name(self.name)

    @property
    def target(self) -> str:
        return f"{self.dataset}#{self.name}"

    @property
    def title(self) -> str:
        return Message("Bookmark the snapshot {snapshot}", snapshot=self.snapshot)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        # Only pages have bookmarks among their facts; in the agent ZFS itself refuses a second one of the same name.
        if any(bookmark.name == self.target for bookmark in facts.bookmarks):
            yield Reason(
                "bookmark-exists",
                "{dataset} already has a bookmark {name}. Choose another name.",
                field="name",
                dataset=self.dataset,
                name=self.name,
            )

    def plan(self, facts: Facts) -> Plan:
        step = Step(
            "bookmark",
            Message("Make the bookmark"),
            shlex.join(["zfs", "bookmark", self.snapshot, self.target]),
            lambda _work: libzfs.create_bookmark(self.target, self.snapshot),
            (self.target,),
            Message("Destroy the bookmark"),
        )
        return Plan(
            summary=Message(
                "{target} marks the moment of {snapshot}. It keeps no files, but a backup that was made up "
                "to that moment can continue from it.",
                target=self.target,
                snapshot=self.snapshot,
            ),
            steps=(step,),
            identity=self.plan_identity(),
            undo=Message(
                "It uses almost no space. It is listed below the folder's snapshots and can be destroyed there."
            ),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return any(bookmark.name == self.target for bookmark in read_bookmarks([self.dataset]))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The bookmark was not made. Make it again.")


class DestroyBookmark(SnapshotsOperation, tag="destroy-bookmark"):
    """Destroy a bookmark, identified by its name and by the guid of its snapshot. No file depends on it."""

    needs_proof = always

    bookmark: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_bookmark(self.bookmark)

    @property
    def dataset(self) -> str:
        return self.bookmark.partition("#")[0]

    @property
    def title(self) -> str:
        return Message("Destroy the bookmark {bookmark}", bookmark=self.bookmark)

    @property
    def subject(self) -> str:
        return self.dataset

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset,)

    def load_extra_facts(self, facts: Facts) -> Facts:
        return replace(facts, bookmarks=tuple(read_bookmarks([self.dataset])))

    def find_bookmark(self, facts: Facts) -> Bookmark | None:
        wanted = (self.bookmark, self.guid)
        return next((bookmark for bookmark in facts.bookmarks if (bookmark.name, bookmark.guid) == wanted), None)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.check_pool(facts)
        if self.find_bookmark(facts) is None:
            yield Reason("bookmark-missing", "The bookmark {bookmark} is no longer there.", bookmark=self.bookmark)

    def plan(self, facts: Facts) -> Plan:
        step = Step(
            "bookmark",
            Message("Destroy the bookmark"),
            shlex.join(["zfs", "destroy", self.bookmark]),
            lambda _work: libzfs.destroy_bookmark(self.bookmark),
            (self.bookmark,),
        )
        return Plan(
            summary=Message("{bookmark} is destroyed. No file and no snapshot is lost.", bookmark=self.bookmark),
            steps=(step,),
            identity={"operation": msgspec.to_builtins(self)},
            losses=(Loss(Message("the bookmark {bookmark}", bookmark=self.bookmark)),),
            warnings=(
                Message(
                    "A backup that should continue from this moment has to start over if the snapshot is gone too."
                ),
            ),
            undo=Message("It can be made again only while its snapshot exists."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return self.find_bookmark(facts) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The bookmark still exists. Destroy it again.")
