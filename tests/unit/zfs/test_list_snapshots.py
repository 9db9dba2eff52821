from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from appliance import command, snapshot_names
from appliance.datasets.rename import RenameDataset
from appliance.errors import Cancelled, Failed, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Snapshot, Span
from appliance.operation import checked_plan
from appliance.snapshots.destroy import DestroySnapshots, PruneSnapshots
from appliance.snapshots.policy import Policy
from appliance.snapshots.set_policy import SetSnapshotPolicy
from appliance.snapshots.take import RunSnapshotPolicies, TakeSnapshot
from appliance.zfs import libzfs, list_snapshots
from tests.reasons import expect_refusal
from tests.unit.made import JOB, dataset, recorded_text
from tests.unit.pools.test_create import Working

ROOT = Path(__file__).parents[3]
GUID = 2**63 + 5  # half of all are larger than a signed number


def snap(number: int, name: str = "tank/photos", **changes: Any) -> Snapshot:
    made = Snapshot(f"{name}@s{number}", GUID + number, number, datetime(2026, 11, 1, number, tzinfo=UTC), used=10)
    return replace(made, **changes)


def facts(*found: Snapshot) -> Facts:
    return Facts(
        pools=(Pool("tank", 1, "ONLINE"),),
        datasets=(dataset("tank"), dataset("tank/photos"), dataset("tank/photos/old")),
        snapshots=found,
    )


class SnapshotIsHeld(Exception):
    def __init__(self, name: bytes) -> None:
        self.name = name


class SnapshotExists(SnapshotIsHeld):
    pass


class Many(Exception):
    def __init__(self, errors: list[Exception]) -> None:
        self.errors = errors


class Library:
    """Stands in for libzfs_core as 2.3.9 behaves: a call is all or nothing, and names who was in the way."""

    def __init__(self) -> None:
        self.there: set[bytes] = set()
        self.held: set[bytes] = set()
        self.calls: list[int] = []

    def lzc_snapshot(self, names, props):
        self.calls.append(len(names))
        if bad := [name for name in names if name in self.there]:
            raise Many([SnapshotExists(name) for name in bad])
        self.there |= set(names)

    def lzc_destroy_snaps(self, names, defer):
        assert defer is False
        self.calls.append(len(names))
        if bad := [name for name in names if name in self.held]:
            raise Many([SnapshotIsHeld(name) for name in bad])
        self.there -= set(names)

    def lzc_snaprange_space(self, first, last):
        return 1000


@pytest.fixture
def library(monkeypatch):
    stand_in = Library()
    monkeypatch.setattr(libzfs, "load_library", lambda: stand_in)
    return stand_in


def test_a_batch_goes_without_those_that_are_held_and_names_them(library):
    names = [f"tank/a@{number}" for number in range(600)]
    library.there = {name.encode() for name in names[:-1]}  # the last is already gone
    library.held = {b"tank/a@3", b"tank/a@400"}
    left = libzfs.destroy_snapshots(names)
    assert {one.name for one in left} == {"tank/a@3", "tank/a@400"}
    assert "Release it first" in left[0].why
    assert library.there == library.held
    assert library.calls == [256, 255, 256, 255, 88]


def test_it_can_be_stopped_between_two_batches(library):
    names = [f"tank/a@{number}" for number in range(600)]
    library.there = {name.encode() for name in names}

    def stop(done: int) -> None:
        if done:
            raise Cancelled

    with pytest.raises(Cancelled):
        libzfs.destroy_snapshots(names, stop)
    assert len(library.there) == 600 - 256


def test_taking_is_all_or_nothing_and_a_run_leaves_out_those_in_the_way(library):
    library.there = {b"tank/a@x"}
    with pytest.raises(Failed, match="is there already"):
        libzfs.take_snapshots(["tank/a@x", "tank/b@x"], {})
    assert b"tank/b@x" not in library.there
    left = libzfs.take_most_snapshots(["tank/a@x", "tank/b@x"], {"larder:run": JOB})
    assert [one.name for one in left] == ["tank/a@x"]
    assert b"tank/b@x" in library.there


def test_an_error_about_none_of_them_is_told(monkeypatch):
    class Broken:
        def lzc_destroy_snaps(self, _names, _defer):
            raise RuntimeError("no such pool")

    monkeypatch.setattr(libzfs, "load_library", Broken)
    with pytest.raises(Failed, match="no such pool"):
        libzfs.destroy_snapshots(["tank/a@x"])


class BookmarkNotSupported(Exception):
    pass


class DatasetBusy(Exception):
    pass


class BookmarkLibrary:
    """Stands in for pyzfs 2.3: ``lzc_bookmark`` fails as ``lzc_bookmark_translate_errors`` does where ZFS gives no list
    of errors, which looks for the source of a bookmark called None where there were several."""

    def __init__(self, fails: dict[bytes, Exception], *, several_fail: bool = True) -> None:
        self.fails, self.several_fail = fails, several_fail
        self.there: dict[bytes, bytes] = {}
        self.calls: list[list[bytes]] = []

    def lzc_bookmark(self, wanted):
        self.calls.append(list(wanted))
        if len(wanted) > 1 and self.several_fail:
            raise KeyError(None)
        if bad := [self.fails[name] for name in wanted if name in self.fails]:
            raise Many(bad)
        self.there |= wanted

    def lzc_destroy_bookmarks(self, names):
        for name in names:
            self.there.pop(name, None)


WANTED_MARKS = {"tank/a#m": "tank/a@x", "tank/b#m": "tank/b@x", "tank/c#m": "tank/c@x"}


@pytest.mark.parametrize(
    ("error", "said"), [(BookmarkNotSupported(), "cannot keep bookmarks"), (DatasetBusy(), "in use at this moment")]
)
def test_bookmarks_that_fail_without_a_list_of_errors_say_why(monkeypatch, error, said):
    library = BookmarkLibrary({b"tank/b#m": error})
    monkeypatch.setattr(libzfs, "load_library", lambda: library)
    with pytest.raises(Failed, match=f"tank/b#m was not made: .*{said}") as caught:
        libzfs.create_bookmarks(WANTED_MARKS)
    assert "None" not in str(caught.value)
    assert library.there == {}  # all or none, as in one call


def test_bookmarks_that_can_be_made_one_at_a_time_are_made(monkeypatch):
    library = BookmarkLibrary({})
    monkeypatch.setattr(libzfs, "load_library", lambda: library)
    libzfs.create_bookmarks(WANTED_MARKS)
    assert library.there == {name.encode(): of.encode() for name, of in WANTED_MARKS.items()}


def test_bookmarks_of_which_zfs_names_the_failed_one_are_not_tried_again(monkeypatch):
    library = BookmarkLibrary({b"tank/b#m": DatasetBusy()}, several_fail=False)
    monkeypatch.setattr(libzfs, "load_library", lambda: library)
    with pytest.raises(Failed, match=r"The bookmarks were not made: .*in use"):
        libzfs.create_bookmarks(WANTED_MARKS)
    assert len(library.calls) == 1


def test_error_of_a_single_bookmark_is_not_tried_again(monkeypatch):
    class Broken:
        def lzc_bookmark(self, _wanted):
            raise KeyError("gone")

    monkeypatch.setattr(libzfs, "load_library", Broken)
    with pytest.raises(Failed, match="The bookmarks were not made"):
        libzfs.create_bookmarks({"tank/a#m": "tank/a@x"})


@pytest.mark.parametrize("name", ["BookmarkNotSupported", "DatasetBusy", "SuspendedPool", "ZIOError"])
def test_errors_of_zfs_are_told_in_sentences(name):
    assert libzfs.error_text(type(name, (Exception,), {})()).endswith(".")


def test_a_tree_is_taken_at_one_moment(library):
    plan = checked_plan(TakeSnapshot(dataset="tank/photos", name="before", below=True, note="tidy up"), facts())
    assert "2 folders" not in plan.summary
    assert "1 folder below it" in plan.summary
    assert (
        plan.steps[0].command_text
        == "zfs snapshot -o 'larder:note=tidy up' -- tank/photos@before tank/photos/old@before"
    )
    plan.steps[0].run(Working())
    assert library.there == {b"tank/photos@before", b"tank/photos/old@before"}
    assert library.calls == [2]
    assert TakeSnapshot(dataset="tank/photos", name="s1").probe("take", facts(snap(1)))
    with expect_refusal("snapshot-exists"):
        checked_plan(TakeSnapshot(dataset="tank/photos", name="s1"), facts(snap(1)))


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a@b", "-a", "larder-daily-2026.01.01-00.00.00", "x" * 51, "a\nb"])
def test_names_that_are_no_snapshots_are_refused(name):
    with pytest.raises(Refused):
        TakeSnapshot(dataset="tank/photos", name=name)


def test_the_proposed_name_is_taken_as_it_is():
    proposed = "larder-manual-2026.11.21-12.00.00"
    assert TakeSnapshot(dataset="tank", name=proposed).name == proposed


def test_destroying_names_what_stays_and_why(library):
    found = [snap(1), snap(2, holds=1), snap(3, clones=("tank/copy",)), snap(4), snap(5)]
    library.there = {one.name.encode() for one in found}
    chosen = DestroySnapshots.for_pairs((one.name, one.guid) for one in found[:4])
    plan = checked_plan(chosen, facts(*found))
    assert plan.summary.startswith("2 snapshots will be destroyed, of 4 chosen.")
    assert plan.title == "Destroy 2 snapshots of tank/photos"
    assert [loss.what for loss in plan.losses] == ["tank/photos: s1, s4"]
    # Released after the review it would go without having been shown.
    assert chosen.plan(facts(snap(1), snap(2), found[2], found[3])).digest() != plan.digest()
    assert "tank/photos@s2: it is protected" in plan.warnings[0]
    assert "tank/copy is a clone of it" in plan.warnings[1]
    work = Working()
    plan.steps[0].run(work)
    assert library.there == {b"tank/photos@s2", b"tank/photos@s3", b"tank/photos@s5"}
    assert work.notes[:2] == list(plan.warnings)  # also in the job's log: they may be others than those that were shown
    # Two runs of neighbours that were measured, then two that were not.
    spans = tuple(Span(one.name, one.name, 1000) for one in (found[0], found[3]))
    plan = checked_plan(chosen, replace(facts(*found), spans=spans))
    plan.steps[0].run(work)
    assert any("at least 2 kB" in note for note in work.notes)
    assert chosen.probe("destroy", facts(*found[1:3]))
    assert not chosen.probe("destroy", facts(*found))


def test_destroying_many_wants_the_folder_s_name_typed():
    found = [replace(snap(1), name=f"tank/photos@s{at}", guid=at, txg=at) for at in range(30)]
    many = DestroySnapshots.for_pairs((one.name, one.guid) for one in found)
    assert checked_plan(many, facts(*found)).type_to_confirm == "tank/photos"
    assert checked_plan(many, facts(*found[:5])).type_to_confirm == ""


def test_what_went_by_itself_is_no_reason_to_refuse_the_rest():
    chosen = DestroySnapshots.for_pairs((one.name, one.guid) for one in (snap(1), snap(2)))
    assert chosen.plan(facts(snap(1), snap(2))).digest() == chosen.plan(facts(snap(2))).digest()
    with expect_refusal("snapshots-missing"):
        checked_plan(chosen, facts(replace(snap(1), guid=7)))


def automatic(number: int, **changes: Any) -> Snapshot:
    """Made up: what a policy took at that hour of a day long ago."""
    at = datetime(2024, 11, 20, number, tzinfo=UTC)
    made = replace(snap(number, run=JOB), created=at, name=f"tank/photos@{snapshot_names.name_for('hourly', at)}")
    return replace(made, **changes)


def with_policy(*snapshots: Snapshot, policy: Policy | None = None) -> Facts:
    found = facts(*snapshots)
    kept = Policy(hourly=1) if policy is None else policy
    text = msgspec.json.encode(kept).decode()
    ours = [one for one in found.datasets if one.name == "tank/photos"] or [dataset("tank/photos")]
    return replace(found, datasets=(replace(ours[0], policy=text, policy_source="local"),))


def pruned(facts: Facts, *snapshots: Snapshot) -> list[int]:
    prune = PruneSnapshots.for_pairs((one.name, one.guid) for one in snapshots)
    return [one.txg for one in prune.find_destroyable(facts)]


def test_pruning_spares_what_no_policy_made_and_the_last_one():
    first, second, third = automatic(1), automatic(2), automatic(3)
    by_hand = replace(automatic(4), name="tank/photos@s4")
    other_guid, unmarked = replace(first, guid=99), automatic(5, run="")
    here = with_policy(first, second, third, by_hand, unmarked)
    assert pruned(here, first, second, by_hand, other_guid, unmarked) == [first.txg, second.txg]
    assert pruned(with_policy(first), first) == []


def test_pruning_takes_no_more_than_the_folder_s_own_policy_gives_up():
    found = [automatic(hour) for hour in range(10)]
    assert pruned(with_policy(*found, policy=Policy(hourly=4)), *found) == [one.txg for one in found[:6]]
    assert pruned(with_policy(*found, policy=Policy(hourly=24)), *found) == []
    assert pruned(facts(*found), *found) == []


def test_pruning_is_not_hastened_by_many_snapshots_of_one_hour():
    old = automatic(1)
    now = datetime(2024, 11, 21, 12, tzinfo=UTC)
    flood = [automatic(2 + number, created=now) for number in range(20)]
    assert pruned(with_policy(old, *flood, policy=Policy(hourly=4)), old) == []


def test_pruning_does_not_count_what_was_taken_in_the_same_transaction():
    old, together = automatic(1), automatic(2)
    here = with_policy(old, replace(together, txg=old.txg), policy=Policy(hourly=1))
    assert pruned(here, old) == []
    assert pruned(with_policy(old, together, policy=Policy(hourly=1)), old) == [old.txg]


def test_pruning_counts_no_snapshot_of_a_clock_that_was_ahead():
    old, ahead = automatic(1), automatic(2, created=datetime.now(UTC) + timedelta(days=1))
    assert pruned(with_policy(old, ahead), old) == []


def test_pruning_spares_a_name_that_no_schedule_gives():
    old = automatic(1, name="tank/photos@larder-hourly-2024.13.20-01.00.00")
    assert pruned(with_policy(old, automatic(2)), old) == []


def test_pruning_leaves_a_young_snapshot():
    now = datetime.now(UTC)
    young = automatic(1, created=now - timedelta(minutes=5))
    later = automatic(2, created=now)
    assert pruned(with_policy(young, later, policy=Policy(daily=5)), young) == []


def test_a_policy_that_keeps_less_needs_a_proof():
    more, less = Policy(hourly=24, daily=14), Policy(hourly=24, daily=13)
    here = with_policy(policy=more)
    busy = replace(here, datasets=tuple(replace(one, snapshots_changed=5) for one in here.datasets))
    for policy, needed in ((less, True), (more, False), (Policy(hourly=48, daily=14), False), (None, False)):
        wanted = SetSnapshotPolicy(dataset="tank/photos", policy=policy)
        assert wanted.needs_proof(busy, wanted.plan(busy)) is needed
        assert not wanted.needs_proof(here, wanted.plan(here))  # nothing has been taken of it yet
    first = SetSnapshotPolicy(dataset="tank/photos", policy=less)
    bare = replace(facts(), datasets=(dataset("tank/photos", snapshots_changed=5),))
    assert first.needs_proof(bare, first.plan(bare))


BELOW, ALONE = Policy(hourly=24), Policy(hourly=24, below=False)


def following(now: Policy, **changes: Any) -> Facts:
    """tank/photos has a schedule and no snapshot yet; tank/photos/old below has snapshots."""
    text = msgspec.json.encode(now).decode()
    photos = dataset("tank/photos", policy=text, policy_source="local")
    old = {"policy": text, "policy_source": "inherited", "snapshots_changed": 5, **changes}
    return replace(facts(), datasets=(dataset("tank"), photos, dataset("tank/photos/old", **old)))


@pytest.mark.parametrize(
    ("now", "then", "needed"),
    [
        (ALONE, BELOW, True),  # the folder below, which kept everything, follows it from now on
        (ALONE, Policy(hourly=1, below=False), False),
        (BELOW, Policy(hourly=1), True),
        (BELOW, Policy(hourly=1, below=False), False),  # the folder below keeps everything from now on
        (BELOW, Policy(hourly=48), False),
        (BELOW, None, False),
    ],
)
def test_a_proof_is_needed_where_any_folder_that_follows_a_schedule_keeps_less(now, then, needed):
    wanted = SetSnapshotPolicy(dataset="tank/photos", policy=then)
    here = following(now)
    assert wanted.needs_proof(here, wanted.plan(here)) is needed


def test_a_folder_that_follows_no_schedule_before_or_after_needs_no_proof():
    wanted = SetSnapshotPolicy(dataset="tank/photos", policy=Policy(hourly=48))
    copy = following(BELOW, copy_of=CopyMark(5, raw=False).text)
    own = following(BELOW, policy_source="local")
    assert not wanted.needs_proof(copy, wanted.plan(copy))
    assert not wanted.needs_proof(own, wanted.plan(own))


def test_a_move_needs_a_proof_where_a_folder_that_follows_the_new_place_keeps_less():
    less = msgspec.json.encode(Policy(hourly=1)).decode()
    strict = dataset("tank/strict", policy=less, policy_source="local")
    for source, needed in (("none", True), ("local", False)):
        below = dataset("tank/photos/old", policy=less, policy_source=source, snapshots_changed=5)
        here = replace(facts(), datasets=(dataset("tank"), dataset("tank/photos"), below, strict))
        moved = RenameDataset(
            dataset="tank/photos", guid=dataset("tank/photos").guid, parent="tank/strict", name="photos"
        )
        assert moved.needs_proof(here, moved.plan(here)) is needed


def test_a_run_takes_what_is_still_the_same_dataset(library):
    photos = dataset("tank/photos")
    run = RunSnapshotPolicies.for_targets(
        "tank",
        JOB,
        "2026.11.21-12.00.00",
        [
            ("tank/photos", photos.guid, ("hourly", "daily")),
            ("tank", 12345, ("hourly",)),
            ("tank/gone", 1, ("hourly",)),
        ],
    )
    plan = checked_plan(run, facts())
    plan.steps[0].run(Working())
    assert library.there == {b"tank/photos@larder-daily-2026.11.21-12.00.00"}
    with expect_refusal("targets-of-other-pool"):
        RunSnapshotPolicies.for_targets("tank", JOB, "2026.11.21-12.00.00", [("pond/photos", 1, ("hourly",))])
    with expect_refusal("moment-invalid"):
        RunSnapshotPolicies.for_targets("tank", JOB, "now", [("tank/photos", 1, ("hourly",))])


def test_a_schedule_that_would_never_run_is_not_set_on_a_copy():
    text = SetSnapshotPolicy(dataset="x", policy=Policy(hourly=24)).property_value
    copy = dataset("tank/backups/photos", copy_of=CopyMark(7, raw=False).text, policy=text, policy_source="local")
    there = replace(facts(), datasets=(dataset("tank"), copy))
    with expect_refusal("schedule-of-copy"):
        checked_plan(SetSnapshotPolicy(dataset=copy.name, policy=Policy(hourly=24)), there)
    assert checked_plan(SetSnapshotPolicy(dataset=copy.name), there)  # one from before can be removed


def test_a_policy_is_a_property_of_its_dataset():
    wanted = SetSnapshotPolicy(dataset="tank/photos", policy=Policy(hourly=24))
    plan = checked_plan(wanted, facts())
    assert plan.steps[0].command_text.startswith('zfs set \'larder:policy={"frequent":0,"hourly":24,')
    here = replace(facts(), datasets=(dataset("tank/photos", policy=wanted.property_value, policy_source="local"),))
    assert wanted.probe("set", here)
    assert not wanted.probe("set", facts())
    with expect_refusal("schedule-not-own"):
        checked_plan(SetSnapshotPolicy(dataset="tank/photos"), facts())
    assert (
        checked_plan(SetSnapshotPolicy(dataset="tank/photos"), here).steps[0].command_text
        == "zfs inherit larder:policy tank/photos"
    )


ONE_AND_TWO = b"""\
tank/a b@one\tguid\t9223372036854775813
tank/a b@one\tcreatetxg\t17
tank/a b@one\tcreation\t1793500000
tank/a b@one\tused\t4096
tank/a b@one\treferenced\t98304
tank/a b@one\twritten\t8192
tank/a b@one\tuserrefs\t1
tank/a b@one\tclones\ttank/copy2,tank/copy
tank/a b@one\tlarder:run\t3f1a
tank/a b@one\tlarder:task\t0123abcd
tank/a b@one\tlarder:note\ttidy\tup
and more
tank/a b@one\tguid\t7
tank/a b@two\tguid\t8
tank/a b@two\tcreatetxg\t18
tank/a b@two\tclones\t-
"""


def test_snapshots_are_read_line_by_line():
    """Names with spaces, a guid above 2^63, what Larder set; a note with a tab and a line break spoils no other."""
    first, again, second = list_snapshots.snapshots_from(ONE_AND_TWO.splitlines())
    assert (first.name, first.guid, first.txg, first.used) == ("tank/a b@one", 2**63 + 5, 17, 4096)
    assert (first.holds, first.clones, first.run, first.note) == (1, ("tank/copy", "tank/copy2"), "3f1a", "tidy\tup")
    assert (first.task, again.task) == ("0123abcd", "")
    assert (again.guid, again.run) == (7, "")
    assert (second.name, second.guid, second.txg, second.clones) == ("tank/a b@two", 8, 18, ())


def test_snapshots_are_read_as_zfs_prints_them(commands):
    """Recorded: a name with a space, a guid above 2^63, and a note that stands on the folder and is
    no word of its snapshots."""
    commands.answers["zfs"] = recorded_text("zfs-get-snapshots-2.3.9.txt")
    one, two = list_snapshots.list_snapshots(["zz/a b"])
    assert (one.name, one.guid, one.holds, one.clones) == ("zz/a b@one", 18027312830689965278, 1, ("zz/copy",))
    assert (one.run, one.note) == ("", "")
    assert (two.run, two.note, two.clones) == ("3f1a", "tidy up", ())
    assert one.txg < two.txg


# Stands in for zfs: as many snapshots of one folder as the first argument of its script says.
MANY = """#!/usr/bin/awk -f
BEGIN {
    for (n = 1; n <= %d; n++) {
        name = "tank/photos@zrepl_20260101_" n
        printf "%%s\\tguid\\t%%d\\n%%s\\tcreatetxg\\t%%d\\n%%s\\tcreation\\t1793500000\\n", name, n + 4e15, name, n, name
        printf "%%s\\tused\\t0\\n%%s\\treferenced\\t98304\\n%%s\\twritten\\t0\\n%%s\\tuserrefs\\t0\\n%%s\\tclones\\t\\n", name, name, name, name, name
    }
    exit %d
}
"""
READER = """
import sys
from pathlib import Path
from appliance import command
from appliance.zfs import list_snapshots as snapshots
command.ENVIRONMENT["PATH"] = sys.argv[1] + ":/usr/bin:/bin"
count = sum(1 for one in snapshots.list_snapshots(["tank/photos"]))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(count, peak.split()[1])
"""


def fake_zfs(place: Path, count: int, status: int = 0) -> None:
    (place / "zfs").write_text(MANY % (count, status))
    (place / "zfs").chmod(0o755)


def test_half_a_million_snapshots_of_one_folder_are_read_in_64_mib(tmp_path):
    fake_zfs(tmp_path, 500_000)
    said = subprocess.run(
        [sys.executable, "-c", READER, tmp_path], capture_output=True, text=True, check=True, cwd=ROOT
    )
    count, kibibytes = said.stdout.split()
    assert int(count) == 500_000
    assert int(kibibytes) < 64 * 1024


def test_listing_that_fails_after_some_lines_is_an_error(tmp_path, monkeypatch):
    fake_zfs(tmp_path, 10, status=1)
    monkeypatch.setitem(command.ENVIRONMENT, "PATH", f"{tmp_path}:/usr/bin:/bin")
    found = list_snapshots.list_snapshots(["tank/photos"])
    with pytest.raises(command.CommandFailed):
        list(found)


def test_lines_end_the_process_when_nobody_reads_on_and_when_it_is_silent():
    some = command.read_lines(["yes"], silence=20)
    assert [next(some), next(some)] == [b"y", b"y"]
    del some  # its end ends the process
    with pytest.raises(command.CommandTimedOut):
        list(command.read_lines(["sleep", "600"], silence=0.2))
    with pytest.raises(command.CommandMissing):
        list(command.read_lines(["no-such-tool"], silence=1))
    assert list(command.read_lines(["printf", "a\\n\\nb"], silence=20)) == [b"a", b"", b"b"]
