from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.agent.registry import decode_operation
from appliance.errors import Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Bookmark
from appliance.operation import as_json, checked_plan
from appliance.snapshots import bookmarks
from appliance.snapshots.bookmarks import BookmarkSnapshot, DestroyBookmark
from appliance.zfs import libzfs
from tests.reasons import expect_refusal
from tests.unit.made import recorded
from tests.unit.pools.test_create import Working
from tests.unit.zfs.test_list_snapshots import GUID, facts, snap

MARK = Bookmark("tank/photos#mark", GUID, 7, datetime(2026, 11, 1, tzinfo=UTC))
THIS: dict[str, Any] = {"bookmark": MARK.name, "guid": MARK.guid}


def listing(*found: Bookmark) -> str:
    """Made-up output of zfs list, in the form of the recorded one."""

    def value(text: object) -> dict[str, object]:
        return {"value": str(text), "source": {"type": "NONE", "data": "-"}}

    return json.dumps(
        {
            "datasets": {
                one.name: {
                    "name": one.name,
                    "type": "BOOKMARK",
                    "properties": {
                        "guid": value(one.guid),
                        "createtxg": value(one.txg),
                        "creation": value(int(one.created.timestamp())),
                    },
                }
                for one in found
            }
        }
    )


def test_bookmarks_are_read_from_recorded_listing():
    assert list(bookmarks.bookmarks_from(recorded("zfs-list-bookmarks-2.3.9.json"))) == [
        Bookmark("tank/a#m1", 213066845596011319, 10, datetime(2026, 11, 22, 0, 40, 34, tzinfo=UTC)),
        Bookmark("tank/a/b#m2", 7769841630417364851, 12, datetime(2026, 11, 22, 0, 40, 36, tzinfo=UTC)),
    ]


@pytest.fixture
def zfs(monkeypatch: pytest.MonkeyPatch) -> list[Bookmark]:
    """The bookmarks that zfs list prints."""
    there: list[Bookmark] = []

    def run(argv: list[str], **_options: object) -> command.Result:
        assert argv[:9] == ["zfs", "list", "-j", "-p", "-t", "bookmark", "-d", "1", "-o"]
        return command.Result(tuple(argv), 0, listing(*there), "", 0)

    monkeypatch.setattr(command, "run", run)
    return there


def with_marks(*found: Bookmark) -> Facts:
    return replace(facts(snap(1)), bookmarks=found)


def test_read_bookmarks_keeps_guid_above_2_to_63(zfs):
    zfs.append(MARK)
    assert list(bookmarks.read_bookmarks(["tank/photos"])) == [MARK]
    assert (MARK.dataset, MARK.short) == ("tank/photos", "mark")


def test_destroy_bookmark_refuses_missing_bookmark_and_stopped_pool(monkeypatch):
    gone: list[str] = []
    monkeypatch.setattr(libzfs, "destroy_bookmark", gone.append)
    plan = checked_plan(DestroyBookmark(**THIS), with_marks(MARK))
    assert plan.steps[0].command_text == "zfs destroy 'tank/photos#mark'"
    plan.steps[0].run(Working())
    assert gone == [MARK.name]
    for found in (with_marks(), with_marks(replace(MARK, guid=1))):
        with expect_refusal("bookmark-missing"):
            checked_plan(DestroyBookmark(**THIS), found)
    stopped = replace(with_marks(MARK), pools=(Pool("tank", 1, "SUSPENDED"),))
    with expect_refusal("pool-stopped"):
        checked_plan(DestroyBookmark(**THIS), stopped)


def test_destroy_bookmark_plans_the_same_in_page_and_agent(zfs):
    zfs.append(MARK)
    operation = DestroyBookmark(**THIS)
    read = operation.load_extra_facts(facts(snap(1)))
    assert checked_plan(operation, read).digest() == checked_plan(operation, with_marks(MARK)).digest()
    assert not operation.probe("bookmark", read)
    assert operation.probe("bookmark", with_marks())
    assert decode_operation(as_json(operation)) == operation


def test_bookmark_snapshot_refuses_existing_name(zfs):
    made = BookmarkSnapshot(snapshot="tank/photos@s1", guid=snap(1).guid, name="mark")
    checked_plan(made, with_marks())
    with expect_refusal("bookmark-exists"):
        checked_plan(made, with_marks(MARK))
    assert not made.probe("bookmark", with_marks())
    zfs.append(MARK)
    assert made.probe("bookmark", with_marks())


@pytest.mark.parametrize(
    "name", ["tank/photos", "tank/photos@mark", "tank/photos#", "tank/photos#a/b", "#mark", "tank#a\nb"]
)
def test_destroy_bookmark_refuses_invalid_name(name):
    with pytest.raises(Refused):
        DestroyBookmark(bookmark=name, guid=1)
