"""Bookmarks: moments of a dataset that are remembered without their files. Reading them, making one, letting one go."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from appliance import names
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Bookmark
from appliance.operation import Loss, Plan, Step, always, never
from appliance.snapshots.hold_clone import SnapshotOperation
from appliance.snapshots.take import SnapshotsOperation
from appliance.zfs import libzfs, list_snapshots
from appliance.zfs.scan_status import moment
from appliance.zfs.status import whole

COLUMNS = "name,guid,createtxg,creation"


def bookmarks_from(listing: Mapping[str, Any]) -> Iterator[Bookmark]:
    """The bookmarks of a ``zfs list -j -p -t bookmark`` object with COLUMNS."""
    for name, raw in (listing.get("datasets") or {}).items():
        values = {key: whole(one.get("value")) for key, one in (raw.get("properties") or {}).items()}
        yield Bookmark(
            name=str(name),
            guid=values.get("guid", 0),
            txg=values.get("createtxg", 0),
            created=moment(values.get("creation", 0)) or datetime.fromtimestamp(0, UTC),
        )


def read_bookmarks(datasets: Iterable[str]) -> Iterator[Bookmark]:
    """The bookmarks of these datasets, without those below; a dataset that has gone is passed over. Raises Failed."""
    for listing in list_snapshots.listings(datasets, "bookmark", COLUMNS):
        yield from bookmarks_from(listing)


class BookmarkSnapshot(SnapshotOperation, tag="bookmark-snapshot"):
    """Remember a snapshot's moment without its data, so that a backup can go on from it after the snapshot has gone."""

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
        return f"Bookmark the snapshot {self.snapshot}"

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        # Of pages; where it runs, ZFS itself refuses a second of the same name.
        if any(one.name == self.target for one in facts.bookmarks):
            yield Reason("", f"{self.dataset} has a bookmark {self.name} already. Choose another name.", field="name")

    def plan(self, facts: Facts) -> Plan:
        shown = shlex.join(["zfs", "bookmark", self.snapshot, self.target])
        act = Step(
            "bookmark", "Make it", shown, lambda _work: libzfs.bookmark(self.target, self.snapshot), (self.target,),
            "Destroy the bookmark",
        )  # fmt: skip
        return Plan(
            summary=f"{self.target} remembers the moment of {self.snapshot}. It keeps no files: a backup that was made up to that moment can go on from it.",
            steps=(act,),
            identity=self.identity(),
            undo="It takes next to no space. It is listed below the folder's snapshots, and can be destroyed there.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return any(one.name == self.target for one in read_bookmarks([self.dataset]))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "It was not made. Make it again."


class DestroyBookmark(SnapshotsOperation, tag="destroy-bookmark"):
    """Let a bookmark go, known by its name and by the guid of the snapshot that it was made of. No file depends on it."""

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
        return f"Destroy the bookmark {self.bookmark}"

    @property
    def subject(self) -> str:
        return self.dataset

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset,)

    def load_extra_facts(self, facts: Facts) -> Facts:
        return replace(facts, bookmarks=tuple(read_bookmarks([self.dataset])))

    def there(self, facts: Facts) -> Bookmark | None:
        return next((one for one in facts.bookmarks if (one.name, one.guid) == (self.bookmark, self.guid)), None)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.stopped(facts)
        if self.there(facts) is None:
            yield Reason("", f"The bookmark {self.bookmark} is no longer there.")

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=f"{self.bookmark} goes. No file and no snapshot does.",
            steps=(
                Step(
                    "bookmark",
                    "Destroy it",
                    shlex.join(["zfs", "destroy", self.bookmark]),
                    lambda _work: libzfs.destroy_bookmark(self.bookmark),
                    (self.bookmark,),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            losses=(Loss(f"the bookmark {self.bookmark}"),),
            warnings=(
                "A backup that wants to go on from this moment has to begin anew where the snapshot itself has gone too.",
            ),
            undo="It can be made again only while its snapshot is there.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return self.there(facts) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "It is still there. Destroy it again."
