"""Folders with nothing new are not sent: found exactly, by as many commands however many
there are, and never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.backups import copies, run_backup, run_mark, run_results, tasks, unchanged
from appliance.backups.copy_dataset import DatasetCopy
from appliance.backups.run_backup import RunBackup
from appliance.backups.tasks import BackupTask
from appliance.backups.unchanged import is_unchanged
from appliance.command import CommandFailed
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts import user_properties
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset, Property, Snapshot
from appliance.message import Message, words_of
from appliance.operation import Step, checked_plan
from appliance.zfs import kstat, libzfs, list_snapshots
from tests.unit.made import box, dataset, disk
from tests.unit.pools.test_create import Working

SAFE = 2000
TASK = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos")
TOP = replace(dataset("tank/photos", guid=5), backup=tasks.encode_tasks((TASK,)), backup_source="local")
START = datetime(2026, 11, 20, 2, tzinfo=UTC)


def snapshot(day: int, name: str = "tank/photos", **changes) -> Snapshot:
    return replace(Snapshot(f"{name}@day-{day}", day, day, START + timedelta(days=day)), **changes)


def copy_values(one: Dataset = TOP, **changes: str) -> dict[str, str]:
    """What ZFS says of a copy that is as a run left it."""
    return {**copies.properties_of(one), "written": "0", **changes}


# --- what counts as nothing new -------------------------------------------------------------------------------------
def test_folder_of_which_nothing_was_written_since_its_copy_is_unchanged():
    days = [snapshot(1, written=7), snapshot(2, written=9), snapshot(3), snapshot(4)]
    assert is_unchanged(TOP, days, 2, copy_values())


@pytest.mark.parametrize(
    ("why", "days", "newest", "changes"),
    [
        ("something was written", [snapshot(1), snapshot(2, written=1)], 1, {}),
        (
            "something was written and a snapshot taken in between",
            [snapshot(1), snapshot(2, written=1), snapshot(3)],
            1,
            {},
        ),
        ("there is no copy", [snapshot(1), snapshot(2)], 0, {}),
        ("its copy ends with a snapshot that is gone here", [snapshot(2), snapshot(3)], 1, {}),
        ("its copy has the newest already, which the run has to see", [snapshot(1)], 1, {}),
        ("files in the copy were changed", [snapshot(1), snapshot(2)], 1, {"written": "512"}),
        ("an interrupted run left something", [snapshot(1), snapshot(2)], 1, {"receive_resume_token": "1-e604ea4bf"}),
        ("the copy could be mounted", [snapshot(1), snapshot(2)], 1, {"canmount": "on"}),
        (
            "the copy is another folder's",
            [snapshot(1), snapshot(2)],
            1,
            {user_properties.COPY_OF: '{"guid":6,"raw":false}'},
        ),
        ("the copy remembers other settings", [snapshot(1), snapshot(2)], 1, {user_properties.ORIGIN: "{}"}),
    ],
)
def test_folder_is_sent_where(why, days, newest, changes):
    assert not is_unchanged(TOP, days, newest, copy_values(**changes)), why


def test_encrypted_folder_is_sent_because_a_new_passphrase_is_nothing_that_was_written():
    one = replace(TOP, encryption="aes-256-gcm")
    assert not is_unchanged(one, [snapshot(1), snapshot(2)], 1, copy_values(one))


def test_property_that_a_copy_inherits_does_not_count(monkeypatch):
    lines = (
        "safe/x\twritten\t0\t-\nsafe/x\tlarder:copy-of\tmine\tinherited from safe\nsafe/x\tlarder:origin\town\tlocal\n"
    )
    monkeypatch.setattr(command, "run", lambda *_args, **_more: command.Result((), 0, lines, "", 0))
    assert unchanged.read_below("safe/x", []) == {"safe/x": {"written": "0", "larder:origin": "own"}}


# --- a run ----------------------------------------------------------------------------------------------------------
class Zfs:
    """Stands in for ZFS: folders with a copy each, and what was asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        below = [dataset(f"tank/photos/{number:03}", guid=10 + number) for number in range(count - 1)]
        self.tree = [TOP, *below]
        self.target = {one.guid: one.name.replace("tank/", "safe/backups/", 1) for one in self.tree}
        self.written: dict[str, int] = {}
        self.snapshots = [
            snapshot(1, name, guid=one.guid * 100) for one in self.tree for name in (one.name, self.target[one.guid])
        ]
        self.marks: set[str] = set()
        self.commands: list[list[str]] = []
        self.listed: list[int] = []
        self.sent: list[str] = []
        self.refused = ""
        self.thick: set[str] = set()  # volumes that reserve more than is free
        self.looking_fails = False
        monkeypatch.setattr(command, "run", self.run)
        monkeypatch.setattr(list_snapshots, "list_snapshots", self.list_some)
        monkeypatch.setattr(libzfs, "take_most_snapshots", self.take)
        monkeypatch.setattr(libzfs, "create_bookmarks", lambda found: self.marks.update(found))
        monkeypatch.setattr(libzfs, "destroy_bookmarks", lambda found: self.marks.difference_update(found))
        monkeypatch.setattr(libzfs, "destroy_snapshots", self.destroy)
        monkeypatch.setattr(run_backup, "run_copy", self.copy)
        monkeypatch.setattr(run_backup, "withdraw", lambda _work, _copy: None)
        monkeypatch.setattr(run_backup, "read_features", lambda _pool: {})

    def facts(self) -> Facts:
        there = [
            dataset(self.target[one.guid], guid=one.guid + 5000, copy_of=copies.mark_text(one)) for one in self.tree
        ]
        home = dataset("safe/backups", guid=3)
        pools = (Pool("tank", 1000, "ONLINE"), Pool("safe", SAFE, "ONLINE"))
        return replace(box(disk(1), disk(2)), pools=pools, datasets=(*self.tree, home, *there))

    def run(self, argv: list[str], **_more: object) -> command.Result:
        self.commands.append(argv)
        if argv[1] == "get" and self.looking_fails:
            raise CommandFailed(command.Result(tuple(argv), 1, "", "cannot open: I/O error", 0))
        rows = [
            f"{self.target[one.guid]}\t{key}\t{value}\tlocal"
            for one in self.tree
            for key, value in copy_values(one).items()
        ]
        return command.Result(tuple(argv), 0, "\n".join(rows) if argv[1] == "get" else "", "", 0)

    def list_some(self, names: Iterable[str]) -> Iterator[Snapshot]:
        wanted = set(names)
        self.listed.append(len(wanted))
        return iter(sorted((one for one in self.snapshots if one.dataset in wanted), key=lambda one: one.txg))

    def take(self, names: Iterable[str], properties: dict[str, str]) -> tuple[libzfs.Left, ...]:
        left = []
        for number, name in enumerate(names):
            of = name.partition("@")[0]
            if of in self.thick:
                left.append(libzfs.Left(name, libzfs.SAID["NoSpace"]))
                continue
            at, task = START + timedelta(days=2), properties["larder:task"]
            self.snapshots.append(Snapshot(name, 7000 + number, 2, at, written=self.written.get(of, 0), task=task))
        return tuple(left)

    def destroy(self, names: Iterable[str]) -> tuple[libzfs.Left, ...]:
        gone = set(names)
        self.snapshots = [one for one in self.snapshots if one.name not in gone]
        return ()

    def copy(self, _work: object, one: DatasetCopy, _zone: object) -> int:
        if one.source.name == self.refused:
            raise Refused(Reason("backup-no-room", "There is no room."))
        self.sent.append(one.source.name)
        return 0

    def steps(self) -> tuple[Step, ...]:
        facts = self.facts()
        pool = facts.pool_of(SAFE)
        assert pool
        return checked_plan(RunBackup.of(TOP, TASK, pool, "2026.11.22-02.00.00"), facts).steps

    def go(self) -> Working:
        work = Working()
        for step in self.steps():
            step.run(work)
        return work

    @property
    def left_at_source(self) -> list[str]:
        return sorted(one.dataset for one in self.snapshots if "@larder-backup-" in one.name)


def test_increment_with_nothing_new_takes_as_many_commands_for_200_folders_as_for_two(monkeypatch):
    asked = []
    for count in (2, 200):
        zfs = Zfs(monkeypatch, count)
        zfs.go()
        assert zfs.sent == []
        asked.append((len(zfs.commands), len(zfs.listed)))
    assert asked[0] == asked[1] == (3, 2), (
        "the pool's bookmarks, one look at the copies, the mark, and one list on each side"
    )


def test_nothing_of_the_run_stays_at_folders_that_have_nothing_new(monkeypatch):
    zfs = Zfs(monkeypatch, 3)
    zfs.written = {"tank/photos/001": 4096}
    work = zfs.go()
    assert zfs.sent == ["tank/photos/001"]
    assert zfs.left_at_source == ["tank/photos/001"]
    assert [name.partition("#")[0] for name in zfs.marks] == ["tank/photos/001"]
    assert "Nothing new in 2 of 3 folders: their copies are complete." in work.notes
    assert "All folders were copied: 3." in work.notes


def test_volume_that_zfs_takes_no_snapshot_of_keeps_no_folder_from_being_copied(monkeypatch):
    """Its refreservation has to fit into what is free once more."""
    zfs = Zfs(monkeypatch, 3)
    zfs.written, zfs.thick = {"tank/photos": 4096}, {"tank/photos/001"}
    work = Working()
    with pytest.raises(Failed, match=r"1 of 3 folders.*tank/photos/001: .*The pool has no space left for it\."):
        for step in zfs.steps():
            step.run(work)
    assert zfs.sent == ["tank/photos"]
    assert any("tank/photos/001@larder-backup-" in note and "was not taken" in note for note in work.notes)
    mark = mark_set(zfs)
    assert mark and mark.complete_since(5) and mark.complete_since(11) is None


def test_run_of_which_no_snapshot_can_be_taken_fails_there(monkeypatch):
    zfs = Zfs(monkeypatch, 2)
    zfs.thick = {one.name for one in zfs.tree}
    with pytest.raises(Failed, match=r"No snapshot was taken.*no space left"):
        zfs.go()
    assert zfs.sent == [] and not zfs.marks


def test_run_on_a_pool_that_cannot_keep_bookmarks_takes_no_snapshot(monkeypatch):
    zfs = Zfs(monkeypatch, 2)
    answer = zfs.run

    def run(argv: list[str], **more: object) -> command.Result:
        if argv[0] == "zpool" and "feature@bookmarks" in argv:
            assert argv[-1] == "tank"
            return command.Result(tuple(argv), 0, "disabled\n", "", 0)
        return answer(argv, **more)

    monkeypatch.setattr(command, "run", run)
    before = list(zfs.snapshots)
    with pytest.raises(Failed, match=r"No snapshot was taken.*cannot keep bookmarks"):
        zfs.go()
    assert zfs.snapshots == before and not zfs.marks


def test_run_that_was_killed_before_it_had_bookmarks_can_be_started_again(monkeypatch):
    zfs = Zfs(monkeypatch, 2)
    monkeypatch.setattr(libzfs, "create_bookmarks", lambda found: (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        zfs.go()
    monkeypatch.setattr(libzfs, "create_bookmarks", lambda found: zfs.marks.update(found))
    zfs.thick = {one.name for one in zfs.tree}  # as ZFS answers where the name is taken
    work = zfs.go()
    assert "All folders were copied: 2." in work.notes


def mark_set(zfs: Zfs) -> run_mark.RunMark | None:
    (argv,) = [argv for argv in zfs.commands if argv[1] == "set"]
    assert argv[3] == "safe/backups/photos"
    value = argv[2].removeprefix(f"{user_properties.COPIED}=")
    return run_mark.run_mark_of(replace(TOP, properties={user_properties.COPIED: Property(value, "local")}))


def test_run_marks_up_to_when_its_copies_are_complete_but_for_those_that_failed(monkeypatch):
    zfs = Zfs(monkeypatch, 3)
    zfs.written, zfs.refused = {"tank/photos/001": 4096}, "tank/photos/001"
    with pytest.raises(Failed, match="1 of 3 folders was not copied"):
        zfs.go()
    mark = mark_set(zfs)
    assert mark and mark.run == "2026.11.22-02.00.00"
    assert mark.complete_since(5) == START + timedelta(days=2)
    assert mark.complete_since(11) is None


def test_every_failure_of_a_run_can_be_translated(monkeypatch):
    """Joined as plain text they stay English on a Dutch page."""
    zfs = Zfs(monkeypatch, run_results.NAMED + 2)
    zfs.written = {f"tank/photos/{number:03}": 4096 for number in range(run_results.NAMED + 1)}

    def fail(_work: object, one: DatasetCopy, _zone: object) -> int:
        raise Failed(Message("The pool that receives has stopped"))

    monkeypatch.setattr(run_backup, "run_copy", fail)
    with pytest.raises(Failed) as caught:
        zfs.go()
    said = explain_error(caught.value)
    assert str(said).endswith("tank/photos/004: The pool that receives has stopped And 1 more.")
    words = {"The pool that receives has stopped": "Dicht.", "And {number} more.": "Plus {number}."}
    dutch = words_of(said, lambda text: words.get(text, text))
    assert dutch.count("Dicht.") == run_results.NAMED
    assert dutch.endswith("tank/photos/004: Dicht. Plus 1.")


def test_what_is_somebody_elses_is_not_marked(monkeypatch):
    zfs = Zfs(monkeypatch, 1)
    zfs.written, zfs.refused = {"tank/photos": 4096}, "tank/photos"
    with pytest.raises(Failed):
        zfs.go()
    assert not [argv for argv in zfs.commands if argv[1] == "set"]


def test_pool_that_stops_in_the_middle_is_asked_for_nothing_more(monkeypatch, tmp_path):
    """Whatever asks a pool that waits for its disks waits as well, and cannot be ended."""
    monkeypatch.setattr(kstat, "KSTAT", tmp_path)
    zfs = Zfs(monkeypatch, 3)
    zfs.written = dict.fromkeys(("tank/photos", "tank/photos/000", "tank/photos/001"), 4096)
    (tmp_path / "safe").mkdir()
    (tmp_path / "safe" / "state").write_text("ONLINE\n")

    def pull(_work: object, one: DatasetCopy, _zone: object) -> int:
        (tmp_path / "safe" / "state").write_text("SUSPENDED\n")
        raise Failed("The pool that receives has stopped")

    monkeypatch.setattr(run_backup, "run_copy", pull)
    asked: list[str] = []
    monkeypatch.setattr(run_backup, "read_features", lambda pool: asked.append(pool) or {})
    with pytest.raises(Failed, match="3 of 3 folders were not copied"):
        zfs.go()
    assert asked == ["safe"]
    assert not [argv for argv in zfs.commands if argv[1] == "set"]


def test_every_folder_is_looked_at_where_the_copies_cannot_be_read(monkeypatch):
    zfs = Zfs(monkeypatch, 2)
    zfs.looking_fails = True
    work = zfs.go()
    assert zfs.sent == ["tank/photos", "tank/photos/000"]
    assert any("could not find out" in note for note in work.notes)


def test_run_that_came_to_its_end_is_known_by_its_mark_after_a_crash(monkeypatch):
    zfs = Zfs(monkeypatch, 2)
    facts = zfs.facts()
    pool = facts.pool_of(SAFE)
    assert pool
    operation = RunBackup.of(TOP, TASK, pool, "2026.11.22-02.00.00")

    def seen(mark: run_mark.RunMark | None) -> Facts:
        assert mark
        noted = {user_properties.COPIED: Property(mark.text, "local")}
        found = tuple(
            replace(one, properties=noted) if one.name == "safe/backups/photos" else one for one in facts.datasets
        )
        return replace(facts, datasets=found)

    names = ("snapshot", "copy-5", "copy-10", "check")
    at = START + timedelta(days=2)
    assert not any(operation.probe(name, facts) for name in names)
    done = seen(run_mark.mark_of("2026.11.22-02.00.00", at, []))
    assert all(operation.probe(name, done) for name in names)
    partly = seen(run_mark.mark_of("2026.11.22-02.00.00", at, [10]))
    assert [operation.probe(name, partly) for name in names] == [True, True, False, False]
    other = seen(run_mark.mark_of("2026.11.21-02.00.00", at, []))
    assert not any(operation.probe(name, other) for name in names)


@pytest.mark.parametrize(
    "text", ["", "x", "[]", '{"run":"a"}', '{"run":"a","at":-1}', '{"run":"a","at":99999999999}', '{"run":1,"at":5}']
)
def test_mark_that_larder_did_not_write_is_none(text):
    assert run_mark.run_mark_of(replace(TOP, properties={user_properties.COPIED: Property(text, "local")})) is None


def test_mark_that_was_inherited_or_received_is_none():
    good = run_mark.RunMark("2026.11.22-02.00.00", 1_800_000_000).text
    for source in ("inherited", "received"):
        assert run_mark.run_mark_of(replace(TOP, properties={user_properties.COPIED: Property(good, source)})) is None


def test_run_that_left_more_than_a_property_holds_sets_no_mark():
    assert run_mark.mark_of("2026.11.22-02.00.00", START, range(201)) is None
    mark = run_mark.mark_of("2026.11.22-02.00.00", START, range(2**64 - 200, 2**64))
    assert mark and len(mark.text) < 8000


@pytest.mark.parametrize(
    ("failed", "count", "said"),
    [
        (1, 1, "The folder was not copied"),
        (1, 3, "1 of 3 folders was not copied"),
        (2, 3, "2 of 3 folders were not copied"),
    ],
)
def test_folders_that_were_not_copied_are_counted_in_plain_english(failed, count, said):
    run = run_results.Run(failures=dict.fromkeys(range(failed), "why"))
    with pytest.raises(Failed, match=f"^{said}"):
        run_results.conclude(run, count, Working())
