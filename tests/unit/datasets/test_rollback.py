"""Rollback: refusals, losses, and the order of its steps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from appliance import schedule
from appliance.datasets.access_note import AccessNote, encode_note
from appliance.datasets.rollback import RollBack
from appliance.errors import Failed, Refused
from appliance.facts.box import Checkpoint, Facts
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Bookmark, Property
from appliance.facts.sharing import Share
from appliance.operation import checked_plan
from appliance.shares import teardown
from appliance.snapshots.bookmarks import BookmarkSnapshot
from appliance.snapshots.space import measure_space
from appliance.zfs import libzfs, list_snapshots, status
from tests.reasons import expect_refusal
from tests.unit.pools.test_create import Working
from tests.unit.zfs.test_list_snapshots import Library, facts, snap

SHARE = Share("smb", "photos", "/tank/photos")


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "box_zone", lambda: ZoneInfo("Europe/Berlin"))


def roll(number: int = 1, *, way_back: bool = True) -> RollBack:
    one = snap(number)
    return RollBack(snapshot=one.name, guid=one.guid, way_back=way_back)


def shared(*numbers: int) -> Facts:
    found = facts(*(snap(number) for number in numbers))
    return replace(
        found, shares=(SHARE,), datasets=tuple(replace(one, mountpoint=f"/{one.name}") for one in found.datasets)
    )


def test_rollback_lists_losses_and_asks_for_name():
    plan = checked_plan(roll(), shared(1, 2, 3))
    assert [loss.what for loss in plan.losses] == [
        "everything written to tank/photos after 1 November 2026, 02:00",
        "tank/photos: s2, s3",
    ]
    assert plan.type_to_confirm == "tank/photos"
    assert any("checkpoint" in text for text in plan.warnings)
    assert plan.digest() != checked_plan(roll(), shared(1, 2)).digest()
    assert plan.digest() != checked_plan(roll(way_back=False), shared(1, 2, 3)).digest()
    assert checked_plan(roll(way_back=False), shared(1)).undo == "It cannot be undone."


def copy_with(*numbers: int, mark: CopyMark) -> Facts:
    """The snapshots are those of a copy that a backup made, which is read-only as all of them are."""
    found = facts(*(snap(number) for number in numbers))
    return replace(found, datasets=tuple(replace(one, readonly=True, copy_of=mark.text) for one in found.datasets))


def test_copy_that_was_written_to_is_put_back_to_its_newest_snapshot_as_the_failed_run_says():
    plan = checked_plan(roll(3), copy_with(1, 2, 3, mark=CopyMark(5, raw=False)))
    assert [loss.what for loss in plan.losses] == ["everything written to tank/photos after 1 November 2026, 04:00"]


def gentler_ways(found: Facts, number: int = 1) -> str:
    return checked_plan(roll(number), found).warnings[-1]


def test_rollback_names_gentler_ways_that_are_possible():
    assert "restore them from there" in gentler_ways(shared(1))
    assert "make a folder from the snapshot" in gentler_ways(shared(1))
    disk = shared(1)
    disk = replace(disk, shares=(), datasets=tuple(replace(one, kind="volume") for one in disk.datasets))
    assert gentler_ways(disk) == "To keep both, make a volume from the snapshot."


@pytest.mark.parametrize(
    ("kind", "original", "files"), [("filesystem", 77, True), ("filesystem", 5, False), ("volume", 77, False)]
)
def test_rollback_of_copy_names_ways_that_are_possible_for_a_copy(kind, original, files):
    """Nothing can be made from its snapshots beside it, and its files go only into an original that is on this box."""
    found = copy_with(1, mark=CopyMark(original, raw=False))
    found = replace(
        found,
        datasets=(
            *(replace(one, kind=kind) for one in found.datasets),
            replace(found.datasets[0], name="tank/home", guid=77, copy_of=""),
        ),
    )
    said = gentler_ways(found)
    assert f"“Restore this {'volume' if kind == 'volume' else 'folder'}” on the page of the copy" in said
    assert "make a folder" not in said and "make a volume" not in said
    assert ("restore them from there" in said) is files


def test_copy_is_not_put_back_further_because_no_run_destroys_what_it_has():
    with expect_refusal("rollback-of-copy"):
        checked_plan(roll(2), copy_with(1, 2, 3, mark=CopyMark(5, raw=False)))


def test_read_only_folder_that_no_run_continues_is_refused():
    with expect_refusal("dataset-read-only"):
        checked_plan(roll(3), copy_with(1, 2, 3, mark=CopyMark(0, raw=False)))


@pytest.mark.parametrize("changes", [{"holds": 1}, {"clones": ("tank/copy",)}])
def test_rollback_refuses_newer_snapshots_with_hold_or_clone(changes):
    with expect_refusal("newer-snapshot-needed"):
        checked_plan(roll(), facts(snap(1), snap(2, **changes)))
    # An older one may be held or cloned.
    checked_plan(roll(2), facts(snap(1, **changes), snap(2)))


def test_rollback_refuses_without_checkpoint_unless_asked():
    found = shared(1, 2)
    found = replace(found, pools=(replace(found.pools[0], checkpoint=Checkpoint("exists", None)),))
    with expect_refusal("rollback-without-checkpoint"):
        checked_plan(roll(), found)
    checked_plan(roll(way_back=False), found)


@pytest.fixture
def done(monkeypatch):
    """The recorded calls, in order; none of them is real."""
    order: list[str] = []
    found = shared(1, 2)
    monkeypatch.setattr(status, "read_datasets", lambda: found.datasets)
    monkeypatch.setattr(list_snapshots, "list_snapshots", lambda _names: iter([snap(1)]))
    monkeypatch.setattr(
        teardown, "serve_datasets", lambda some, _note: order.append(f"serve {' '.join(one.name for one in some)}")
    )
    monkeypatch.setattr(
        teardown, "close_shares", lambda shares: order.append(f"close {' '.join(one.name for one in shares)}")
    )
    monkeypatch.setattr(libzfs, "take_checkpoint", lambda pool: order.append(f"checkpoint {pool}"))
    monkeypatch.setattr(libzfs, "destroy_all_or_none", lambda names: order.append(f"destroy {' '.join(names)}") or ())
    monkeypatch.setattr(libzfs, "newer_bookmarks", lambda _dataset, _txg: ["tank/photos#b"])
    monkeypatch.setattr(libzfs, "destroy_bookmark", lambda name: order.append(f"destroy {name}"))
    monkeypatch.setattr(libzfs, "rollback_to", lambda dataset, name: order.append(f"rollback {dataset} {name}"))
    return order


def test_rollback_pauses_shares_and_serves_them_again(done):
    checked_plan(roll(), shared(1, 2)).steps[0].run(Working())
    assert done == [
        "serve tank tank/photos/old",
        "close photos",
        "checkpoint tank",
        "destroy tank/photos@s2",
        "destroy tank/photos#b",
        "rollback tank/photos tank/photos@s1",
        "serve tank tank/photos tank/photos/old",
    ]


def test_rollback_serves_shares_paused_by_interrupted_run(done, monkeypatch):
    monkeypatch.setattr(teardown, "all_served", lambda _facts, _datasets: False)
    checked_plan(roll(way_back=False), replace(shared(1, 2), shares=())).steps[0].run(Working())
    assert [one for one in done if one.startswith(("serve", "close"))] == ["serve tank tank/photos tank/photos/old"]


def test_rollback_marks_access_as_not_applied(done, monkeypatch):
    text = encode_note(AccessNote(guid=5, everybody="read", done=True))
    found = shared(1, 2)
    said = tuple(
        replace(one, guid=5, access=text, access_source="local") if one.name == "tank/photos" else one
        for one in found.datasets
    )
    monkeypatch.setattr(status, "read_datasets", lambda: said)
    ran: list[list[str]] = []
    monkeypatch.setattr("appliance.command.run", lambda argv, **_options: ran.append(argv))
    plan = checked_plan(roll(), replace(found, datasets=said))
    assert any("Access to its files" in text for text in plan.warnings)
    assert not any("Who may use" in text for text in checked_plan(roll(), found).warnings)
    plan.steps[0].run(Working())
    assert done[-2].startswith("rollback")
    assert [(argv[:2], '"done":false' in argv[2]) for argv in ran] == [(["zfs", "set"], True)]


@pytest.mark.parametrize("breaks", ["take_checkpoint", "rollback_to"])
def test_failed_rollback_serves_shares_again(done, monkeypatch, breaks):
    def fail(*_arguments: object) -> None:
        raise Failed("no")

    monkeypatch.setattr(libzfs, breaks, fail)
    with pytest.raises(Failed):
        checked_plan(roll(), shared(1, 2)).steps[0].run(Working())
    assert done[-1] == "serve tank tank/photos tank/photos/old"
    if breaks == "take_checkpoint":
        assert not any(one.startswith(("destroy", "rollback")) for one in done)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ([snap(2)], "is no longer there"),
        ([snap(1), snap(2), snap(3)], "s3 was taken meanwhile"),
        ([snap(1), snap(2, holds=1)], "cannot be destroyed"),
        ([snap(1), snap(2, clones=("tank/copy",))], "cannot be destroyed"),
    ],
)
def test_rollback_that_cannot_succeed_destroys_nothing(done, monkeypatch, now, said):
    monkeypatch.setattr(list_snapshots, "list_snapshots", lambda _names: iter(now))
    with pytest.raises(Failed, match=said) as failed:
        checked_plan(roll(), shared(1, 2)).steps[0].run(Working())
    assert "Nothing was destroyed" in str(failed.value)
    assert not any(one.startswith(("destroy", "rollback")) for one in done)


class NoBookmarks(Library):
    def lzc_get_bookmarks(self, _dataset, _properties):
        return {}


def test_newer_snapshot_in_use_stops_rollback_before_anything_is_destroyed(monkeypatch):
    """Such as one that somebody copies a file out of: no hold and no clone says so beforehand, only ZFS does."""
    every = [
        replace(snap(1), name=f"tank/photos@s{number}", guid=snap(1).guid + number - 1, txg=number)
        for number in range(1, 401)
    ]
    library = NoBookmarks()
    library.there = {one.name.encode() for one in every}
    library.held = {b"tank/photos@s300"}
    monkeypatch.setattr(libzfs, "load_library", lambda: library)
    monkeypatch.setattr(list_snapshots, "list_snapshots", lambda _names: iter(every))
    with pytest.raises(Failed, match="Nothing was destroyed") as failed:
        roll().restore_snapshot(Working(), every[1:])
    assert "tank/photos@s300" in failed.value.said
    assert library.there == {one.name.encode() for one in every}


def test_rollback_notes_which_newer_snapshots_are_destroyed_before_it_fails(done, monkeypatch):
    def fail(*_arguments: object) -> None:
        raise Failed("no")

    monkeypatch.setattr(libzfs, "rollback_to", fail)
    work = Working()
    with pytest.raises(Failed):
        checked_plan(roll(), shared(1, 2)).steps[0].run(work)
    assert "Newer snapshots destroyed: s2" in work.notes


def test_rollback_names_newer_bookmarks():
    def warnings(*marks: tuple[str, int]) -> list[str]:
        found = tuple(Bookmark(name, 5, txg, datetime(2026, 11, 1, tzinfo=UTC)) for name, txg in marks)
        plan = checked_plan(roll(2), replace(shared(1, 2, 3), bookmarks=found))
        return [text for text in plan.warnings if "ookmark" in text]

    (said,) = warnings(
        ("tank/photos#old", 1), ("tank/photos#then", 2), ("tank/photos#later", 3), ("tank/copy#other", 3)
    )
    assert said == "Bookmarks that are newer go too: later. No backup can continue from them."
    assert warnings(("tank/photos#then", 2)) == []


def test_unreadable_bookmarks_stop_rollback_before_anything_is_destroyed(done, monkeypatch):
    def fail(*_arguments: object) -> None:
        raise Failed("The bookmarks could not be read")

    monkeypatch.setattr(libzfs, "newer_bookmarks", fail)
    with pytest.raises(Failed):
        checked_plan(roll(), shared(1, 2)).steps[0].run(Working())
    assert not any(one.startswith(("destroy", "rollback")) for one in done)


def test_rollback_refuses_without_room():
    def with_room(**changes: Any) -> Facts:
        found = facts(snap(1, referenced=500), snap(2))
        return replace(found, datasets=tuple(replace(one, **changes) for one in found.datasets))

    limit = {"refquota": Property("400", "local")}
    with expect_refusal("rollback-above-limit"):
        checked_plan(roll(), with_room(properties=limit))
    reserved = {"refreservation": Property("300", "local")}
    with expect_refusal("rollback-without-room"):
        checked_plan(roll(), with_room(properties=reserved, written=200, available=100))
    checked_plan(roll(), with_room(properties=reserved, written=200, available=200))
    checked_plan(roll(), with_room(properties={"refquota": Property("500", "local")}))


def test_rollback_probe_needs_no_newer_snapshot_and_nothing_written(monkeypatch):
    monkeypatch.setattr(teardown, "all_served", lambda _facts, _datasets: True)
    found = shared(1)
    assert roll().probe("rollback", found)
    written = replace(found, datasets=tuple(replace(one, written=5) for one in found.datasets))
    assert not roll().probe("rollback", written)
    assert not roll().probe("rollback", shared(1, 2))
    assert "as it was before" in roll().recovery_hint("rollback", shared(1, 2))


def test_bookmark_refuses_another_snapshot_of_same_name(monkeypatch):
    made: list[tuple[str, str]] = []
    monkeypatch.setattr(libzfs, "create_bookmark", lambda name, of: made.append((name, of)))
    one = snap(1)
    checked_plan(BookmarkSnapshot(snapshot=one.name, guid=one.guid, name="mark"), facts(one)).steps[0].run(Working())
    assert made == [("tank/photos#mark", "tank/photos@s1")]
    with pytest.raises(Refused, match="no longer there"):
        checked_plan(BookmarkSnapshot(snapshot=one.name, guid=5, name="mark"), facts(one))


def test_missing_snapshots_are_not_measured(monkeypatch):
    def size(first: str, _last: str) -> int:
        if first.endswith("gone"):
            raise Failed("no")
        return 7

    monkeypatch.setattr(libzfs, "range_space", size)
    monkeypatch.setattr(libzfs, "read_holds", lambda _name: {"tag": 5})
    found = measure_space([("tank/a@x", "tank/a@y"), ("tank/a@gone", "tank/a@y")], ["tank/a@x"])
    assert (found.ranges, found.holds) == ((7, None), {"tank/a@x": {"tag": 5}})
