"""Search by name in all snapshots. Plain folders stand in for mounted snapshots."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from appliance.facts.datasets import Snapshot
from appliance.files import traversal
from appliance.snapshots.browse import listing, search
from appliance.zfs import list_snapshots, private_mount
from tests.reasons import expect_refusal
from tests.unit.made import dataset

FIRST = datetime(2026, 11, 1, tzinfo=UTC)


LOOKED: list[str] = []
SNAPSHOTS: list[Snapshot] = []


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for each of the snapshots s0 (oldest) to s2, and one of now."""
    for name in ("s0", "s1", "s2", "now"):
        (tmp_path / name).mkdir()
    SNAPSHOTS[:] = [
        Snapshot(f"tank/photos@s{at}", 100 + at, at, FIRST + timedelta(days=at), written=1) for at in range(3)
    ]
    LOOKED.clear()

    @contextmanager
    def root_of(snapshot: str) -> Iterator[int]:
        LOOKED.append(snapshot)
        handle = os.open(tmp_path / snapshot.partition("@")[2], os.O_RDONLY | os.O_DIRECTORY)
        yield handle
        os.close(handle)

    monkeypatch.setattr(private_mount, "root_of", root_of)
    monkeypatch.setattr(list_snapshots, "list_snapshots", lambda _names: list(SNAPSHOTS))
    monkeypatch.setattr(traversal, "dataset_of", lambda _handle: "tank/photos")
    live = dataset("tank/photos", mountpoint=str(tmp_path / "now"))
    monkeypatch.setattr(listing, "dataset_now", lambda _name: live)
    return tmp_path


def find(text: str, after: str = "", room: int = 10) -> search.SearchResult:
    return search.search_names("tank/photos", text, after, room, lambda _word: None)


def paths(found: search.SearchResult) -> list[tuple[str, str]]:
    return sorted((one.entry.name, one.snapshot) for one in found.found)


def test_file_is_told_once_by_the_newest_snapshot_that_has_it(folders):
    for name in ("s0", "s1"):
        (folders / name / "trip").mkdir()
        (folders / name / "trip/Letter to Anna.txt").write_text(name)
    (folders / "s2/LETTERS").mkdir()
    found = find("letter")
    assert paths(found) == [("LETTERS", "s2"), ("trip/Letter%20to%20Anna.txt", "s1")]
    assert {one.entry.name: (one.entry.kind, one.entry.now) for one in found.found} == {
        "LETTERS": ("folder", "gone"),
        "trip/Letter%20to%20Anna.txt": ("file", "gone"),
    }
    assert (found.searched, found.total, found.after, found.full, found.complete) == (3, 3, "", False, True)


def test_accents_match_however_they_are_written(folders):
    (folders / "s0" / unicodedata.normalize("NFD", "Müller É.txt")).touch()
    assert len(find(unicodedata.normalize("NFC", "MÜLLER é")).found) == 1


def test_name_that_is_no_text_is_found_and_addressed(folders):
    (folders / "s0" / os.fsdecode(b"photo\xff\n.jpg")).touch()
    assert paths(find("photo")) == [("photo%FF%0A.jpg", "s0")]


def test_links_are_neither_found_nor_followed(folders):
    (folders / "s0/letter").symlink_to("/etc/shadow")
    (folders / "s0/way").symlink_to("/etc")
    assert find("letter").found == ()
    assert find("shadow").found == ()


def test_search_stops_at_the_number_of_results(folders):
    for number in range(20):
        (folders / f"s2/letter {number}").touch()
    found = find("letter", room=5)
    assert (len(found.found), found.full, found.after) == (5, True, "")


def test_search_goes_on_where_the_last_piece_ended(folders, monkeypatch):
    monkeypatch.setattr(search, "SECONDS", 0.0)  # a snapshot a piece
    for name in ("s0", "s1", "s2"):
        (folders / name / "letter").touch()
    for name in ("s0", "s1"):
        (folders / name / "old letter").touch()
    first = find("letter")
    assert (paths(first), first.searched, first.after) == ([("letter", "s2")], 1, "102")
    second = find("letter", after=first.after)
    assert (paths(second), second.searched, second.after) == ([("old%20letter", "s1")], 2, "101")
    third = find("letter", after=second.after)
    assert (paths(third), third.searched, third.after) == ([], 3, "")


def test_snapshot_without_a_change_is_not_read_again(folders):
    SNAPSHOTS[2] = replace(SNAPSHOTS[2], written=0)
    found = find("letter")
    assert found.searched == 3
    assert LOOKED == ["tank/photos@s2", "tank/photos@s0"]


def test_position_of_a_destroyed_snapshot_begins_anew(folders):
    (folders / "s2/letter").touch()
    assert len(find("letter", after="999").found) == 1


def test_folder_that_takes_too_long_is_said(folders, monkeypatch):
    monkeypatch.setattr(search, "SECONDS_FOR_ONE", -1.0)
    (folders / "s2/letter").touch()
    assert not find("letter").complete


def test_deep_tree_is_searched(folders):
    deep = folders / "s1"
    for _ in range(200):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "letter").touch()
    assert len(find("letter").found) == 1


@pytest.mark.parametrize("text", ["", "  ", "a/b", "a\0b", "x" * 201])
def test_text_that_is_in_no_name_is_refused(text):
    with expect_refusal("search-text-invalid"):
        search.check_request(text, "", 1)


@pytest.mark.parametrize(("after", "room"), [("x", 1), ("1" * 21, 1), ("", 0), ("", 201)])
def test_position_that_is_none_is_refused(after, room):
    with expect_refusal("search-position-invalid"):
        search.check_request("letter", after, room)
