"""Testing a restore: what is refused, that every file is compared and nothing stays, however it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from appliance import command
from appliance.backups import drill_base, drill_scratch, transfer
from appliance.backups.compare import TreeComparison
from appliance.backups.drill import DrillBackup
from appliance.backups.drill_base import PREFIX, Rehearsal
from appliance.backups.drill_scratch import RemoveDrill
from appliance.backups.tasks import BackupTask, encode_tasks
from appliance.datasets.encryption import key_store
from appliance.errors import Cancelled, Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset, Property
from appliance.operation import Plan, checked_plan
from appliance.snapshots import bookmarks
from appliance.zfs import list_snapshots, private_mount
from tests.reasons import expect_refusal
from tests.unit.backups.test_restore_folder import (
    COPY,
    PHOTOS,
    SECRET,
    SECRET_GUID,
    TREE,
    TRIP,
    TRIP_GUID,
    WANTED,
    Zfs,
    facts_of,
)
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working

KEY = "0123abcd"
SCRATCH = f"tank/drill-{KEY}"
TASK = BackupTask(key=KEY, pool=2000, path="backups/photos")
SEALED: dict[str, Any] = {
    "encryption": "aes-256-gcm",
    "encryption_root": "tank/photos/secret",
    "key_format": "passphrase",
}
ORIGINALS = (
    dataset("tank/photos", guid=PHOTOS, backup=encode_tasks((TASK,)), backup_source="local"),
    dataset("tank/photos/secret", guid=SECRET_GUID, **SEALED),
    dataset("tank/photos/trip 2019", guid=TRIP_GUID),
)
NAMES = {COPY: "tank/photos", TRIP: "tank/photos/trip 2019", SECRET: "tank/photos/secret"}
PLACES = {name: f"{SCRATCH}/{guid}" for name, guid in ((COPY, 55), (TRIP, 56), (SECRET, 57))}
MADE = {"larder:copy-of": CopyMark(0, raw=False).text, "larder:drill": KEY}


def known(*more: Dataset, **changes: Any) -> Facts:
    return facts_of(*ORIGINALS, *more, **changes)


def operation(**changes: Any) -> DrillBackup:
    return DrillBackup(**{"dataset": "tank/photos", "key": KEY, "target": COPY, "pool": "tank", **changes})


def plan() -> Plan:
    return checked_plan(operation(), known())


class Box(Zfs):
    """What ``Zfs`` stands in for, with all below a dataset told at once, keys, and destroying."""

    def answer(self, argv: list[str]) -> str:
        if argv[:2] == ["zfs", "get"] and "-r" in argv:
            keys = argv[-2].split(",")
            lines = [f"{name}\t{line}" for name in self.below(argv[-1]) for line in self.get(name, keys).splitlines()]
            return "".join(f"{line}\n" for line in lines)
        return super().answer(argv)

    def run(self, argv: Sequence[str], **more: Any) -> command.Result:
        result = super().run(argv, **more)
        if argv[:2] == ["zfs", "load-key"] and "wrong" in str(more["given"]):
            return replace(result, status=1)
        return result


@pytest.fixture
def zfs(monkeypatch, tmp_path) -> Box:
    own = {one.name: {"larder:copy-of": one.copy_of} if one.copy_of else {} for one in (*TREE, *ORIGINALS)}
    found = Box(own, {name: [guid] for name, guid in WANTED.items()})
    found.snapshots |= {NAMES[name]: [guid] for name, guid in WANTED.items()}
    monkeypatch.setattr(command, "run", found.run)
    monkeypatch.setattr(list_snapshots, "list_snapshots", found.list_snapshots)
    monkeypatch.setattr(bookmarks, "read_bookmarks", lambda _names: [])
    monkeypatch.setattr(transfer, "send_stream", found.send)
    monkeypatch.setattr(key_store, "FOLDER", tmp_path)
    return found


@pytest.fixture
def compared(monkeypatch) -> list[tuple[str, str]]:
    """The pairs of snapshots that are compared; one is different if its name is in ``different``."""
    pairs: list[tuple[str, str]] = []
    opened: list[str] = []

    @contextmanager
    def root_of(name: str) -> Iterator[int]:
        opened.append(name)
        yield len(opened) - 1

    def compare(name: str, here: int, there: int, _sample: object, result: TreeComparison, _work: object) -> None:
        pairs.append((opened[here], opened[there]))
        result.files += 4
        if name in getattr(compare, "different", ()):
            result.differs("one.jpg", "has different contents")

    monkeypatch.setattr(private_mount, "root_of", root_of)
    monkeypatch.setattr(drill_base, "compare_opened", compare)
    return pairs


def run(found: Plan) -> list[str]:
    work = Working()
    for step in found.steps:
        step.run(work)
    return work.notes


def result_of(notes: Sequence[str]) -> Rehearsal:
    (line,) = [note.removeprefix(PREFIX) for note in notes if note.startswith(PREFIX)]
    return msgspec.json.decode(line, type=Rehearsal)


# --- what is refused ------------------------------------------------------------------------------------------------
def test_steps_name_every_folder_and_nothing_is_lost():
    found = plan()
    assert [step.name for step in found.steps] == [
        "prepare",
        "restore-55",
        "restore-57",
        "restore-56",
        "compare",
        "remove",
    ]
    assert not found.losses
    assert not operation().needs_proof(known(), found)


def full(available: int, used: int) -> Facts:
    tank = replace(TREE[0], available=available, used=used)
    copies = tuple(replace(one, referenced=10**9) if "backups/" in one.name else one for one in TREE[1:])
    return known(datasets=(tank, *copies, *ORIGINALS))


def test_no_room_is_refused_with_both_numbers_and_a_tenth_of_the_pool_stays_free():
    checked_plan(operation(), full(available=5 * 10**9, used=5 * 10**9))
    with pytest.raises(Refused) as seen:
        checked_plan(operation(), full(available=39 * 10**8, used=61 * 10**8))
    said = " ".join(str(seen.value).split())
    assert "needs about 3 GB" in said and "tank has 2.9 GB" in said, said


def test_what_an_earlier_test_left_counts_as_room():
    left = dataset(SCRATCH, used=2 * 10**9, properties={"larder:drill": Property(KEY, "local")})
    facts = full(available=3 * 10**9, used=7 * 10**9)
    checked_plan(operation(), replace(facts, datasets=(*facts.datasets, left)))


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        ("tank", {"key_status": "unavailable"}, "dataset-locked"),
        ("tank", {"readonly": True}, "dataset-read-only"),
        (TRIP, {"encryption": "on", "key_status": "unavailable"}, "dataset-locked"),
    ],
)
def test_place_or_copy_that_cannot_be_used_is_refused(name, changes, code):
    facts = known()
    datasets = tuple(replace(one, **changes) if one.name == name else one for one in facts.datasets)
    with expect_refusal(code):
        checked_plan(operation(), replace(facts, datasets=datasets))


def test_folder_of_somebody_with_that_name_is_refused():
    with expect_refusal("dataset-exists"):
        checked_plan(operation(), known(dataset(SCRATCH)))


def test_folder_without_a_copy_is_refused():
    with expect_refusal("backup-no-copy"):
        checked_plan(operation(), known(datasets=(*TREE[:3], *ORIGINALS)))


# --- what is done ---------------------------------------------------------------------------------------------------
def test_everything_is_restored_apart_compared_with_the_originals_and_removed(zfs, compared):
    before = {name: dict(values) for name, values in zfs.own.items()}
    notes = run(plan())
    assert {(sender[-1].partition("@")[0], receiver[-1]) for sender, receiver in zfs.streams} == set(PLACES.items())
    for _sender, receiver in zfs.streams:
        assert {f"larder:drill={KEY}", "canmount=noauto", "readonly=on"} <= set(receiver) and "-F" not in receiver
    snap = "@larder-backup-x"
    assert compared == [(NAMES[name] + snap, PLACES[name] + snap) for name in (COPY, TRIP)]
    found = result_of(notes)
    assert (found.parts, found.files, found.different, found.skipped) == (3, 8, 0, ("tank/photos/secret",))
    assert zfs.own == before


def test_original_that_lost_that_moment_is_compared_with_the_copy(zfs, compared):
    zfs.snapshots["tank/photos/trip 2019"] = []
    found = result_of(run(plan()))
    assert compared[-1] == (f"{TRIP}@larder-backup-x", f"{PLACES[TRIP]}@larder-backup-x")
    assert found.gone == ("tank/photos/trip 2019",)


@pytest.mark.parametrize(("stored", "files"), [("the phrase of the attic", 12), ("a wrong phrase", 8)])
def test_encrypted_folder_is_compared_with_the_stored_key(zfs, compared, stored, files):
    key_store.key_path(SECRET_GUID).write_text(stored)
    notes = run(plan())
    assert ["zfs", "load-key", "-L", "prompt", "--", PLACES[SECRET]] in zfs.ran
    assert stored not in " ".join(word for argv in zfs.ran for word in argv) + " ".join(notes)
    assert result_of(notes).files == files


def test_difference_fails_with_its_path_and_nothing_stays(zfs, compared):
    drill_base.compare_opened.different = ("tank/photos/trip 2019",)  # type: ignore[attr-defined]
    work = Working()
    with pytest.raises(Failed, match=r"Differences .* \(1\): one\.jpg: has different contents"):
        for step in plan().steps:
            step.run(work)
    assert result_of(work.notes).differences == ("one.jpg: has different contents",)
    assert SCRATCH not in zfs.own


@pytest.mark.parametrize("error", [Failed("no space"), OSError(5, "Input/output error")])
def test_failure_leaves_nothing(zfs, error):
    zfs.interrupt = error
    with pytest.raises(type(error)):
        run(plan())
    assert not [name for name in zfs.own if "drill" in name]


def test_stopping_leaves_nothing(zfs):
    zfs.interrupt = Cancelled()
    with pytest.raises(Cancelled):
        run(plan())
    assert PLACES[COPY] in zfs.own
    operation().clean_up(Working())
    assert not [name for name in zfs.own if "drill" in name]


# --- after kill -9 --------------------------------------------------------------------------------------------------
class Killed(BaseException):
    """As SIGKILL does it: nothing else is done."""


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("at", ["zfs create", "zfs receive", "zfs load-key", "zfs destroy"])
def test_next_test_removes_what_a_killed_one_left(zfs, compared, monkeypatch, at, forgets):
    zfs.forgets = forgets
    key_store.key_path(SECRET_GUID).write_text("the phrase of the attic")
    if at == "zfs receive":
        zfs.interrupt = Killed()
    seen: list[str] = []

    def run_and_die(argv: Sequence[str], **more: Any) -> command.Result:
        result = Box.run(zfs, argv, **more)
        if " ".join(argv).startswith(at) and not seen:
            seen.append(at)
            raise Killed
        return result

    monkeypatch.setattr(command, "run", run_and_die)
    with pytest.raises(Killed):
        run(plan())
    zfs.interrupt = None
    now = known(*scratch_of(zfs))
    assert not any(operation().probe(step.name, now) for step in plan().steps)
    assert result_of(run(checked_plan(operation(), now))).files == 12
    assert not [name for name in zfs.own if "drill" in name]


def scratch_of(zfs: Zfs) -> list[Dataset]:
    return [
        dataset(name, properties={"larder:drill": Property(values["larder:drill"], "local")} if values else {})
        for name, values in zfs.own.items()
        if "drill" in name
    ]


def left(zfs: Box) -> tuple[RemoveDrill, Facts]:
    zfs.own |= {SCRATCH: dict(MADE), PLACES[COPY]: {**MADE, "larder:copy-of": CopyMark(55, raw=False).text}}
    (top, *_rest) = scratch_of(zfs)
    return RemoveDrill(scratch=SCRATCH, guid=top.guid), known(*scratch_of(zfs))


def test_left_over_is_removed(zfs):
    remove, facts = left(zfs)
    run(checked_plan(remove, facts))
    assert not [name for name in zfs.own if "drill" in name]
    assert remove.probe("remove", known()) and not remove.probe("remove", facts)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (f"{SCRATCH}/mine", {}),
        (f"{SCRATCH}/other", {"larder:drill": "ffffffff"}),
        (f"{SCRATCH}/moved", {"larder:copy-of": CopyMark(5, raw=False).text}),
    ],
)
def test_what_no_test_has_made_keeps_it_from_being_removed(zfs, name, values):
    remove, facts = left(zfs)
    zfs.own[name], zfs.snapshots[name] = values, [7]
    with pytest.raises(Failed, match="No drill of this backup has made"):
        run(checked_plan(remove, facts))
    assert name in zfs.own and SCRATCH in zfs.own


@pytest.mark.parametrize(
    ("name", "noted"),
    [
        ("tank/photos", KEY),
        ("safe/backups/drill-0123abcd", KEY),
        ("tank/drill-0123abcd", "ffffffff"),
        ("tank/drill-0123abcd", ""),
    ],
)
def test_only_what_a_test_has_made_can_be_named(name, noted):
    properties = {"larder:drill": Property(noted, "local")} if noted else {}
    one = dataset(name, properties=properties)
    assert not drill_scratch.is_scratch(one)
    with expect_refusal("not-a-drill"):
        checked_plan(RemoveDrill(scratch=name, guid=one.guid), Facts(datasets=(one,)))


def test_mark_that_is_inherited_is_none():
    assert not drill_scratch.is_scratch(
        dataset(SCRATCH, properties={"larder:drill": Property(KEY, "inherited", "tank")})
    )
