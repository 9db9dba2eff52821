"""Browse snapshots and restore files. A plain folder stands in for a mounted snapshot; everything else is real."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from appliance import agent_client, command, names, schedule
from appliance.agent import protocol
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Snapshot
from appliance.files import leftover, traversal
from appliance.operation import checked_plan
from appliance.snapshots.browse import copy_tree, diff, file_versions, listing
from appliance.snapshots.browse import restore as snapshot_restore
from appliance.snapshots.browse.file_versions import Stamp
from appliance.snapshots.browse.restore import RestoreFromSnapshot
from appliance.system import paths
from appliance.zfs import pool_sync, private_mount
from tests.reasons import expect_refusal
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working

SNAP = Snapshot("tank/photos@s1", 2**63 + 7, 5, datetime(2026, 11, 1, 12, 30, tzinfo=UTC))


@pytest.fixture
def then(tmp_path: Path) -> Path:
    """The files of a snapshot."""
    top = tmp_path / "then"
    (top / "trip" / "day one").mkdir(parents=True)
    (top / "trip/day one/photo.jpg").write_bytes(b"old photo")
    (top / "a.txt").write_text("old")
    (top / "gone.txt").write_text("gone")
    (top / "link").symlink_to("/etc/shadow")
    (top / "way out").symlink_to("/etc")
    return top


@pytest.fixture
def now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder as it is now."""
    monkeypatch.setattr(paths, "POOLS", tmp_path)
    monkeypatch.setattr(schedule, "box_zone", lambda: ZoneInfo("Europe/Amsterdam"))
    top = tmp_path / "now"
    top.mkdir()
    (top / "a.txt").write_text("new and longer")
    return top


@pytest.fixture
def roots(then: Path, now: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is there at each ``zpool sync``."""
    synced: list[list[str]] = []

    @contextmanager
    def root_of(_snapshot: str) -> Iterator[int]:
        handle = os.open(then, os.O_RDONLY | os.O_DIRECTORY)
        yield handle
        os.close(handle)

    monkeypatch.setattr(paths, "AGENT_STATE", then.parent / "agent")
    monkeypatch.setattr(private_mount, "root_of", root_of)
    monkeypatch.setattr(traversal, "dataset_of", lambda _handle: "tank/photos")
    monkeypatch.setattr(listing, "dataset_now", lambda _name: dataset("tank/photos", mountpoint=str(now)))
    monkeypatch.setattr(
        pool_sync, "sync_pool_of", lambda _name: synced.append(sorted(one.name for one in now.iterdir()))
    )
    return synced


@pytest.fixture
def facts(now: Path) -> Facts:
    return Facts(
        pools=(Pool("tank", 1, "ONLINE"),),
        datasets=(dataset("tank/photos", mountpoint=str(now)),),
        snapshots=(SNAP,),
    )


@contextmanager
def opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    yield handle
    os.close(handle)


# --- paths -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [b"a b", b"\xff\xfe", b"new\nline", "ünï".encode(), b"x" * 255, b"%2e%2e", b"..."])
def test_path_encodes_any_file_name(name):
    assert names.parse_relative_path(names.encode_relative_path([b"up", name])) == (b"up", name)


@pytest.mark.parametrize(
    "way",
    ["..", "a/..", ".", "/a", "a/", "a//b", "%2e%2e", "a%2Fb", "%00", "a%0", "a b", "x" * 256, "/".join(["a"] * 3000)],
)
def test_path_refuses_what_leads_elsewhere(way):
    with pytest.raises(Refused):
        names.parse_relative_path(way)


def test_links_are_not_followed_and_missing_files_are_refused(then):
    with opened(then) as root:
        for way in ((b"way out", b"passwd"), (b"a.txt", b"x")):
            with expect_refusal("path-through-link"), private_mount.open_beneath(root, way):
                pass
        with expect_refusal("not-a-file"):
            listing.open_file(root, (b"link",))
        with expect_refusal("file-not-in-snapshot"):
            listing.open_file(root, (b"nothing",))
        handle = listing.open_file(root, (b"trip", b"day one", b"photo.jpg"))
        assert os.read(handle, 100) == b"old photo"
        os.close(handle)


def test_pipe_in_snapshot_is_refused_without_blocking(then):
    os.mkfifo(then / "pipe")
    with opened(then) as root, expect_refusal("not-a-file"):
        listing.open_file(root, (b"pipe",))


# --- lists ----------------------------------------------------------------------------------------------------
def test_folder_is_listed_and_compared_with_folder_of_now(then, now):
    with opened(then) as root, opened(now) as live:
        found = listing.list_entries(root, (), "", live)
        assert {(one.name, one.kind, one.now) for one in found.entries} == {
            ("trip", "folder", "gone"),
            ("a.txt", "file", "changed"),
            ("gone.txt", "file", "gone"),
            ("link", "link", "gone"),
            ("way%20out", "link", "gone"),
        }
        assert found.entries[0].name == "trip"
        assert {one.now for one in listing.list_entries(root, (b"trip",), "", live).entries} == {"gone"}
        assert {one.now for one in listing.list_entries(root, (), "", None).entries} == {""}
        with expect_refusal("not-a-folder"):
            listing.list_entries(root, (b"way out",), "", live)


def test_large_folder_is_paged_without_gap(tmp_path):
    for number in range(1050):
        (tmp_path / f"f{number}").touch()
    (tmp_path / "Folder").mkdir()
    (tmp_path / os.fsdecode(b"bad\xff")).touch()
    seen, after = [], ""
    with opened(tmp_path) as root:
        while True:
            found = listing.list_entries(root, (), after, None)
            assert len(found.entries) <= listing.AT_ONCE
            seen += [one.name for one in found.entries]
            after = found.next
            if not after:
                break
        assert len(seen) == len(set(seen)) == found.total == 1052
        assert seen[0] == "Folder"
        with pytest.raises(Refused):
            listing.list_entries(root, (), "1..", None)
        with expect_refusal("list-position-invalid"):
            listing.list_entries(root, (), "9x", None)


# --- versions -------------------------------------------------------------------------------------------------
def looks(text: str) -> list[Stamp]:
    """Made-up stamps, a letter for each snapshot. A dot means missing; its proof differs after each change."""
    stretch = [len(list(itertools.groupby(text[: at + 1]))) for at in range(len(text))]
    return [
        Stamp(letter != ".", (ord(letter), at if letter == "." else 0))
        for letter, at in zip(text, stretch, strict=True)
    ]


@pytest.mark.parametrize(
    "text", ["", "a", "ab", "aaaa", "aabb", "abcd", "aa..bb", "...a", "a...", "abbbbbbbcccccccc..dd", "..a..b.."]
)
def test_bisect_finds_every_distinct_version(text):
    stamps = looks(text)
    found, complete = file_versions.bisect_runs(len(stamps), stamps.__getitem__)
    assert complete
    assert "".join(chr(stamp.proof[0]) * (high - low + 1) for low, high, stamp in found) == text
    letters = [chr(stamp.proof[0]) for _low, _high, stamp in found]
    assert all(one != other for one, other in itertools.pairwise(letters))


def test_bisect_reads_few_snapshots_of_file_with_few_changes():
    asked: list[int] = []

    def look(index: int) -> Stamp:
        asked.append(index)
        return Stamp(True, (index >= 700,))

    found, _ = file_versions.bisect_runs(2000, look)
    assert [(low, high) for low, high, _stamp in found] == [(0, 699), (700, 1999)]
    assert len(asked) <= 14
    asked.clear()
    file_versions.bisect_runs(600, look)
    assert len(asked) == 2


def test_bisect_stopped_early_is_not_complete():
    found, complete = file_versions.bisect_runs(100, lambda index: Stamp(True, (index,)), lambda: False)
    assert not complete
    assert [(low, high) for low, high, _stamp in found] == [(0, 0), (1, 99)]


def test_stamp_changes_when_name_in_parent_was_added_and_removed(tmp_path):
    with opened(tmp_path) as root:
        before = file_versions.read_stamp(root, (b"sub", b"a"))
        assert not before.there
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub").rmdir()
        assert file_versions.read_stamp(root, (b"sub", b"a")).proof != before.proof
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub/a").write_text("x")
        assert file_versions.read_stamp(root, (b"sub", b"a")).there


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ("kept", "kept", "same"),
        ("kept", "other", "changed"),
        ("kept", "empty", "gone"),
        ("empty", "kept", "changed"),
        ("empty", "empty", "gone"),
        ("kept", "", ""),
    ],
)
def test_versions_say_what_the_folder_has_now(tmp_path, monkeypatch, then, now, said):
    for name in ("kept", "other", "empty"):
        (tmp_path / name).mkdir()
    for name in ("kept", "other"):
        (tmp_path / name / "a").write_text(name)
    monkeypatch.setattr(private_mount, "root_of", lambda _name: opened(tmp_path / then))
    with opened(tmp_path / (now or "empty")) as live:
        found = file_versions.read_versions([SNAP], (b"a",), live if now else None)
    assert found.now == said


# --- difference -----------------------------------------------------------------------------------------------
def test_recorded_diff_is_parsed():
    lines = (Path(__file__).parents[1] / "recorded/zfs-diff-2.3.9.txt").read_bytes().splitlines()
    found = diff.sort_changes(diff.changes_from(lines, "/tank/f"))
    told = {(one.what, one.kind, one.path, one.to) for one in found}
    assert ("changed", "file", "with%20space", "") in told
    assert ("changed", "file", "new%0Aline", "") in told
    assert ("changed", "file", "bad%FFx", "") in told
    assert ("changed", "file", "%C3%BCn%C3%AF", "") in told
    assert ("moved", "file", "d/moved", "d/renamed") in told
    assert ("gone", "link", "link", "") in told
    assert ("new", "folder", "newdir", "") in told
    assert not any(one.kind == "folder" and one.what == "changed" for one in found)
    assert all(names.parse_relative_path(one.path) is not None for one in found)


def test_first_lines_of_long_output_are_kept():
    lines, complete = command.first_lines(["seq", "100000"], 10, timeout=20)
    assert (lines[0], len(lines), complete) == (b"1", 10, False)
    assert command.first_lines(["seq", "3"], 10, timeout=20) == ([b"1", b"2", b"3"], True)
    with pytest.raises(command.CommandFailed, match="status"):
        command.first_lines(["false"], 10, timeout=20)
    assert command.first_lines(["sleep", "600"], 10, timeout=0.2) == ([], False)
    assert command.first_lines(["printf", "one\\ntwo"], 10, timeout=20) == ([b"one", b"two"], True)


def test_first_lines_do_not_wait_for_command_that_cannot_be_killed(monkeypatch):
    """Such as one that hangs in the kernel: killing it does nothing, and its output stays open."""
    left: list[Any] = []
    monkeypatch.setattr(command, "kill_process", left.append)
    lines, complete = command.first_lines(["sh", "-c", "echo one; exec sleep 60"], 10, timeout=0.5)
    assert (lines, complete) == ([b"one"], False)
    monkeypatch.undo()
    for process in left:
        command.kill_process(process)


# --- restore ------------------------------------------------------------------------------------------------
def restore(facts: Facts, path: str, place: Literal["beside", "back", "free"] = "beside") -> Working:
    work = Working()
    operation = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path=path, place=place)
    (step,) = checked_plan(operation, facts).steps
    step.run(work)
    assert operation.probe("restore", facts)
    return work


def test_restore_beside_keeps_time_mode_and_attributes(roots, facts, then, now):
    (then / "a.txt").chmod(0o640)
    os.setxattr(then / "a.txt", "user.colour", b"red")
    os.utime(then / "a.txt", ns=(1, 1_600_000_000_123_456_789))
    restore(facts, "a.txt")
    found = now / "a (from 2026-11-01 13.30).txt"
    assert found.read_text() == "old"
    assert found.stat().st_mode & 0o7777 == 0o640
    assert found.stat().st_mtime_ns == 1_600_000_000_123_456_789
    assert os.getxattr(found, "user.colour") == b"red"
    assert (now / "a.txt").read_text() == "new and longer"
    restore(facts, "a.txt")
    assert len(list(now.iterdir())) == 3


def test_d11_restored_name_has_the_minute_that_pages_show_and_no_seconds(then, now):
    """A snapshot's own name is of when its run was planned, some seconds before it was taken."""
    asked = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="a.txt", place="beside")
    late = replace(SNAP, created=SNAP.created.replace(second=41))
    facts = Facts(datasets=(dataset("tank/photos"),), snapshots=(late,))
    assert asked.moment_text(facts) == "2026-11-01 13.30"


def test_restore_takes_the_old_place_only_if_it_is_free(roots, facts, now):
    restore(facts, "gone.txt", "free")
    assert (now / "gone.txt").read_text() == "gone"
    restore(facts, "a.txt", "free")
    assert (now / "a.txt").read_text() == "new and longer"
    assert (now / "a (from 2026-11-01 13.30).txt").read_text() == "old"


def test_restore_to_a_free_place_is_known_by_its_copy(roots, facts, now):
    for path, before in (("gone.txt", False), ("a.txt", False)):
        operation = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path=path, place="free")
        assert operation.probe("restore", facts) is before
        restore(facts, path, "free")
        assert operation.probe("restore", facts)


PLACES = ("back", "free", "beside")


@pytest.mark.parametrize("place", PLACES)
def test_restore_of_what_is_unchanged_counts_as_done_only_once_it_was_copied(roots, facts, then, now, place):
    """What was never changed, or was copied by hand, looks as the copy would, and so does a
    folder changed deep inside."""
    operation = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="trip", place=place)
    for name in ("trip", "trip (from 2026-11-01 13.30)"):
        shutil.copytree(then / "trip", now / name, copy_function=shutil.copy2)
        (now / name / "day one/photo.jpg").write_bytes(b"spoilt")
    assert not operation.probe("restore", facts)
    restore(facts, "trip", place)
    assert operation.probe("restore", facts)


@pytest.mark.parametrize("place", PLACES)
def test_restore_that_is_killed_is_not_done_because_an_earlier_one_was(roots, facts, now, monkeypatch, place):
    restore(facts, "trip", place)
    operation = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="trip", place=place)
    (step,) = checked_plan(operation, facts).steps

    class Killed(BaseException):
        pass

    def kill(*_arguments: object) -> None:
        raise Killed

    monkeypatch.setattr(copy_tree.TreeCopy, "count_tree", kill)
    with pytest.raises(Killed):
        step.run(Working())
    assert not operation.probe("restore", facts)


def test_restore_out_of_a_copy_is_known_by_its_copy_in_the_original(roots, facts, then, now):
    """Files in a received copy have the numbers (inodes) of the original, so equal or not they prove nothing."""
    shutil.copy2(then / "a.txt", now / "a.txt")
    mark = CopyMark(facts.datasets[0].guid, raw=False).text
    copy = dataset("tank/backups/photos", mountpoint="none", mounted=False, copy_of=mark)
    then_in_copy = replace(SNAP, name="tank/backups/photos@s1")
    box = replace(facts, datasets=(*facts.datasets, copy), snapshots=(then_in_copy,))
    operation = RestoreFromSnapshot(
        snapshot=then_in_copy.name, guid=SNAP.guid, path="a.txt", place="back", into="tank/photos"
    )
    assert not operation.probe("restore", box)
    checked_plan(operation, box).steps[0].run(Working())
    assert operation.probe("restore", box)


@pytest.mark.parametrize("original", [77, 0])
@pytest.mark.parametrize("mounted", [False, True])
def test_restore_out_of_a_copy_without_its_original_names_the_ways_that_there_are(facts, original, mounted):
    """Mounting the copy, or making it writable, would help nobody; 0: it was set aside."""
    copy = dataset(
        "tank/backups/films", mounted=mounted, readonly=True, copy_of=CopyMark(original, raw=False).text, guid=5
    )
    then_in_copy = replace(SNAP, name="tank/backups/films@s1")
    box = replace(facts, datasets=(*facts.datasets, copy), snapshots=(then_in_copy,))
    asked = RestoreFromSnapshot(snapshot=then_in_copy.name, guid=SNAP.guid, path="a.txt")
    (reason,) = asked.check(box)
    assert reason.code == "restore-original-gone"
    assert "original of the copy tank/backups/films" in reason.text
    assert "download the file" in reason.text


def test_restore_in_place_is_not_done_between_its_two_renames(roots, facts, then, now, monkeypatch):
    """What was there has its other name, and the copy has not got its own yet."""
    shutil.copy2(then / "a.txt", now / "a.txt")
    operation = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="a.txt", place="back")
    rename, renamed = private_mount.libc_function, list[str]()

    def killed_at_second(name: str, *arguments: object) -> None:
        renamed.append(name)
        if len(renamed) == 2:
            raise KeyboardInterrupt
        rename(name, *arguments)

    monkeypatch.setattr(private_mount, "libc_function", killed_at_second)
    with pytest.raises(KeyboardInterrupt):
        checked_plan(operation, facts).steps[0].run(Working())
    assert not operation.probe("restore", facts)
    assert sorted(one.name for one in now.iterdir()) == ["a (replaced 2026-11-01 13.30).txt"]


def test_restore_in_place_renames_current_file(roots, facts, now):
    work = restore(facts, "a.txt", "back")
    assert (now / "a.txt").read_text() == "old"
    assert (now / "a (replaced 2026-11-01 13.30).txt").read_text() == "new and longer"
    assert any("called a (replaced" in note for note in work.notes)


def test_restore_folder_makes_missing_parents(roots, facts, then, now):
    (then / "trip/day one/secret").symlink_to("/etc/shadow")
    os.utime(then / "trip/day one", ns=(1, 1_500_000_000_000_000_000))
    (then / "trip").chmod(0o750)
    restore(facts, "trip/day%20one", "back")
    assert (now / "trip/day one/photo.jpg").read_bytes() == b"old photo"
    assert (now / "trip/day one/secret").readlink() == Path("/etc/shadow")
    assert (now / "trip/day one").stat().st_mtime_ns == 1_500_000_000_000_000_000
    assert (now / "trip").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("kernel", ["copies", "cannot"])
def test_restore_keeps_sparse_file_sparse(roots, facts, then, now, monkeypatch, kernel):
    def cannot(*_arguments: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    if kernel == "cannot":
        monkeypatch.setattr("os.copy_file_range", cannot)
    mib, size = 2**20, 300 * 2**20 + 123
    with (then / "disk.img").open("wb") as file:
        for at in (5 * mib + 17, 90 * mib, 250 * mib):
            file.seek(at)
            file.write(os.urandom(mib + 4711))
        file.truncate(size)
    restore(facts, "disk.img", "back")
    found = (now / "disk.img").stat()
    assert (found.st_size, found.st_blocks * 512 < 8 * mib) == (size, True)
    with (then / "disk.img").open("rb") as old, (now / "disk.img").open("rb") as new:
        assert hashlib.file_digest(old, "sha256").digest() == hashlib.file_digest(new, "sha256").digest()


def test_restore_keeps_hard_links(roots, facts, then, now):
    (then / "trip/more").mkdir()
    (then / "trip/more/twice.jpg").hardlink_to(then / "trip/day one/photo.jpg")
    (then / "trip/thrice.jpg").hardlink_to(then / "trip/day one/photo.jpg")
    restore(facts, "trip", "back")
    found = [(now / "trip" / name).stat() for name in ("day one/photo.jpg", "more/twice.jpg", "thrice.jpg")]
    assert len({one.st_ino for one in found}) == 1
    assert found[0].st_nlink == 3
    assert (now / "trip/more/twice.jpg").read_bytes() == b"old photo"


def test_restore_drops_set_uid(roots, facts, then, now):
    (then / "trip/tool").write_text("x")
    (then / "trip/tool").chmod(0o6755)
    (then / "trip").chmod(0o2770)
    work = restore(facts, "trip", "back")
    assert (now / "trip/tool").stat().st_mode & 0o7777 == 0o755
    assert (now / "trip").stat().st_mode & 0o7777 == 0o2770  # new files there get the folder's group
    assert any("1 files could run as another user" in note for note in work.notes)


def test_restored_folder_gets_its_name_once_all_of_it_is_on_the_disks(roots, facts, then, now):
    """The name says that the copy is whole, also to a job that is settled after a power cut."""
    shutil.rmtree(now / "trip", ignore_errors=True)
    restore(facts, "trip", "back")
    ((before, *others),) = roots
    assert (before.startswith(".larder-"), "trip" in others) == (True, False)
    assert (now / "trip").is_dir()


def test_restore_review_warns_of_old_permissions(facts):
    plan = checked_plan(RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="a.txt"), facts)
    assert any("permissions are restored as they were then" in text for text in plan.warnings)


@pytest.mark.parametrize("place", ["beside", "back", "free"])
def test_restore_says_what_is_done_and_shows_no_command_that_does_not_run(facts, place):
    plan = checked_plan(RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="a.txt", place=place), facts)
    shown = plan.steps[0].command_text
    assert "cp " not in shown
    assert ("(from " in shown) is (place != "back")
    assert ("(replaced " in shown) is (place == "back")


def test_restore_removes_leftovers_and_leaves_nothing_after_failure(roots, facts, now, monkeypatch):
    operation = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="trip", place="back")
    left = now / operation.temporary_name.decode()
    left.mkdir(mode=0o700)
    (left / "sub/below").mkdir(parents=True)
    (left / "link").symlink_to("/etc")
    (step,) = checked_plan(operation, facts).steps
    step.run(Working())
    assert not left.exists()
    assert (now / "trip/day one/photo.jpg").exists()

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copy_tree, "copy_attributes", full)
    with pytest.raises(Failed, match="No space"):
        checked_plan(replace_path(operation, "a.txt"), facts).steps[0].run(Working())
    assert sorted(one.name for one in now.iterdir()) == ["a.txt", "trip"]


def test_restore_leaves_what_a_user_put_under_its_temporary_name(roots, facts, now):
    operation = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="trip", place="back")
    theirs = now / operation.temporary_name.decode()
    theirs.mkdir(mode=0o755)
    (theirs / "thesis.txt").write_text("years of work")
    with pytest.raises(
        Failed, match=rf"{theirs.name} exists already, and it is not certain that Larder made it.*Rename or remove it"
    ):
        checked_plan(operation, facts).steps[0].run(Working())
    assert (theirs / "thesis.txt").read_text() == "years of work"
    assert not (now / "trip").exists()


def test_copy_that_is_whole_is_still_known_as_a_leftover(roots, facts, then, now, monkeypatch):
    """Killed after it got its owner and mode and before it got its name."""
    (then / "trip").chmod(0o755)
    operation = RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="trip", place="back")
    (step,) = checked_plan(operation, facts).steps
    left = now / operation.temporary_name.decode()
    with monkeypatch.context() as cut:
        cut.setattr(leftover, "remove_leftover", lambda *_arguments: None)
        cut.setattr(RestoreFromSnapshot, "name_copy", lambda *_arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            step.run(Working())
    assert left.exists()
    step.run(Working())
    assert (sorted(one.name for one in now.iterdir()), left.exists()) == (["a.txt", "trip"], False)


def replace_path(operation: RestoreFromSnapshot, path: str) -> RestoreFromSnapshot:
    return RestoreFromSnapshot(snapshot=operation.snapshot, guid=operation.guid, path=path, place=operation.place)


def test_restore_does_not_write_through_link_on_the_way(roots, facts, now, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (now / "trip").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failed, match="not a folder any more"):
        restore(facts, "trip/day%20one")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_restore_refuses_links_missing_paths_and_unusable_datasets(roots, facts):
    with expect_refusal("link-not-restored"):
        restore(facts, "link")
    with expect_refusal("path-not-in-snapshot"):
        restore(facts, "nothing")
    changes: dict[str, Any]
    for code, changes in (
        ("dataset-not-mounted", {"mounted": False}),
        ("restore-into-read-only", {"readonly": True}),
        ("dataset-is-volume", {"kind": "volume"}),
    ):
        other = replace(facts, datasets=(replace(facts.datasets[0], **changes),))
        with expect_refusal(code):
            restore(other, "a.txt")
    with pytest.raises(Refused):
        RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="../x")
    with expect_refusal("path-not-chosen"):
        RestoreFromSnapshot(snapshot=SNAP.name, guid=SNAP.guid, path="")


def test_snapshots_of_a_backup_copy_are_not_compared_and_nobody_is_sent_to_mount_it(monkeypatch):
    copy = dataset("tank/backups/films", mounted=False, copy_of=CopyMark(77, raw=False).text)
    monkeypatch.setattr(listing, "dataset_now", lambda _name: copy)
    with expect_refusal("copy-not-compared"):
        diff.read_diff("tank/backups/films@s1")


def test_insert_words_keeps_name_within_limit():
    for name in (b"x" * 255, ("ü" * 127).encode(), b"\xff" * 255, b"x" * 250 + b".txt", b"." + b"y" * 254):
        made = snapshot_restore.insert_words(name, "(from 2026-11-01 13.30)", 3)
        assert len(made) <= 255
        assert b"13.30) 3" in made
    assert "ü" in snapshot_restore.insert_words(("ü" * 127).encode(), "(x)").decode()
    assert snapshot_restore.insert_words(b".profile", "(x)") == b".profile (x)"


# --- the agent ------------------------------------------------------------------------------------------------
def pass_on(connection: socket.socket, message: dict[str, Any], handle: int) -> None:
    socket.send_fds(connection, [json.dumps(message).encode() + b"\n"], [handle])


def test_agent_hands_over_open_file(roots, tmp_path, monkeypatch):
    place = tmp_path / "agent.sock"
    monkeypatch.setattr("appliance.system.paths.AGENT_SOCKET", place)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        pid = os.fork()
        if not pid:
            connection, _ = listening.accept()
            asked = connection.recv(65536)
            protocol.answer_request(
                asked,
                lambda message: connection.sendall(json.dumps(message).encode() + b"\n"),
                send_file=lambda message, handle: pass_on(connection, message, handle),
            )
            os._exit(0)
        facts, handle = agent_client.open_file({"verb": "open-file", "snapshot": SNAP.name, "path": "a.txt"})
        os.waitpid(pid, 0)
    assert facts["size"] == 3
    with os.fdopen(handle, "rb") as stream:
        assert stream.read() == b"old"


@pytest.mark.parametrize(
    "request_",
    [
        {"verb": "open-file", "snapshot": SNAP.name, "path": "../a"},
        {"verb": "open-file", "snapshot": SNAP.name, "path": "way%20out/passwd"},
        {"verb": "open-file", "snapshot": "tank/photos", "path": "a.txt"},
        {"verb": "open-file", "snapshot": "tank/../x@y", "path": "a.txt"},
        {"verb": "open-file", "snapshot": "-o@y", "path": "a.txt"},
        {"verb": "list-folder", "snapshot": SNAP.name, "path": "", "after": "9x"},
        {"verb": "read-difference", "snapshot": SNAP.name, "until": "tank/other@x"},
        {"verb": "read-difference", "snapshot": SNAP.name, "seconds": 0},
        {"verb": "read-difference", "snapshot": SNAP.name, "seconds": 10**6},
        {"verb": "read-versions", "dataset": "tank/photos", "path": ""},
    ],
    ids=str,
)
def test_agent_refuses_invalid_requests(roots, request_):
    replies: list[dict[str, Any]] = []
    protocol.answer_request(json.dumps(request_).encode(), replies.append)
    assert list(replies[-1]) == ["refused"], replies
