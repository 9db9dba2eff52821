"""Testing a restore from another computer: what is refused, what is fetched, and that every file is
compared and nothing stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.backups import drill_base, transfer
from appliance.backups.remote import connection, settings
from appliance.backups.remote.drill_remote import DrillRemote
from appliance.backups.stream import NotReceived
from appliance.backups.tasks import BackupTask, encode_tasks
from appliance.datasets.encryption import key_store
from appliance.errors import Cancelled, Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset, Property
from appliance.facts.remote import Remote
from appliance.operation import Plan, checked_plan
from tests.reasons import expect_refusal

# fixtures
from tests.unit.backups.test_drill import KEY, SCRATCH, SEALED, Box, compared, result_of, run, zfs  # noqa: F401
from tests.unit.backups.test_remote_answers import HELLO
from tests.unit.backups.test_remote_connection import OTHER
from tests.unit.backups.test_restore_folder import PHOTOS, SECRET_GUID, TREE, TRIP_GUID, facts_of
from tests.unit.backups.test_restore_remote import NEW_HELLO, REMOTE, Peer, listing
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working

TASK = BackupTask(key=KEY, pool=0, remote=REMOTE.id, path="photos", rate=20)
HERE = {
    "tank/photos": (PHOTOS, 101),
    "tank/photos/secret": (SECRET_GUID, 103),
    "tank/photos/trip 2019": (TRIP_GUID, 102),
}
ORIGINALS = (
    dataset(
        "tank/photos",
        guid=PHOTOS,
        referenced=10**9,
        backup=encode_tasks((TASK,)),
        backup_source="local",
        properties={"acltype": Property("posix", "local")},
    ),
    dataset("tank/photos/secret", guid=SECRET_GUID, **SEALED),
    dataset("tank/photos/trip 2019", guid=TRIP_GUID),
)
THERE = {"photos": (55, 101, False), "photos/secret": (57, 103, True), "photos/trip_2019": (56, 102, False)}
PLACES = {name: f"{SCRATCH}/{guid}" for name, (guid, _snapshot) in HERE.items()}
SNAP = "@larder-backup-x"


def known(*more: Dataset, **changes: Any) -> Facts:
    return facts_of(*more, **{"datasets": (*TREE, *ORIGINALS, *more), "remotes": (REMOTE,), **changes})


def operation(**changes: Any) -> DrillRemote:
    return DrillRemote(**{"dataset": "tank/photos", "key": KEY, "remote": REMOTE.id, "pool": "tank", **changes})


def plan() -> Plan:
    return checked_plan(operation(), known())


@pytest.fixture
def peer(monkeypatch, zfs: Box) -> Peer:  # noqa: F811
    """Another computer with a copy of each folder, and the snapshots that this box has of them."""
    zfs.snapshots = {name: [snapshot] for name, (_guid, snapshot) in HERE.items()}
    found = Peer()
    found.hello, found.tree = NEW_HELLO, listing(THERE)
    monkeypatch.setattr(connection, "ask", found.ask)
    monkeypatch.setattr(settings, "find_remote", lambda _key: REMOTE)
    monkeypatch.setattr(settings, "write_remote", lambda _remote: None)
    return found


class Streams:
    """Stands in for what is sent: what was asked there, what came here, and how fast it was allowed to."""

    def __init__(self, zfs: Box) -> None:  # noqa: F811
        self.zfs, self.asked, self.received, self.rates = zfs, list[str](), list[list[str]](), list[int]()
        self.brings: list[int] = []
        self.below = ""  # a dataset that comes along below it
        self.fails: BaseException | None = None

    def send(
        self, sender: Sequence[str], receiver: Sequence[str], tell: Any, rate: Any, *_more: Any, **_how: Any
    ) -> int:
        self.asked.append(sender[-1])
        self.received.append(list(receiver))
        self.rates.append(rate())
        if receiver[-1] not in self.zfs.own:
            self.zfs.make(list(receiver))
        if self.fails:
            self.zfs.partly[receiver[-1]] = 1
            raise self.fails
        tell(5)
        self.zfs.partly.pop(receiver[-1], None)
        if self.below:
            self.zfs.own[f"{receiver[-1]}/{self.below}"] = {}
            self.zfs.snapshots[f"{receiver[-1]}/{self.below}"] = [9]
        self.zfs.snapshots[receiver[-1]] += [*self.brings, int(sender[-1].split()[2])]
        return 10


@pytest.fixture
def streams(monkeypatch, peer, zfs: Box) -> Streams:  # noqa: F811
    found = Streams(zfs)
    monkeypatch.setattr(transfer, "send_stream", found.send)
    return found


def left_of_it(zfs: Box) -> list[str]:  # noqa: F811
    return [name for name in zfs.own if "drill" in name]


# --- what is refused ------------------------------------------------------------------------------------------------
def test_steps_ask_first_and_nothing_is_lost():
    found = plan()
    assert [step.name for step in found.steps] == [
        "connect",
        "prepare",
        "restore-5",
        "restore-7",
        "restore-6",
        "compare",
        "remove",
    ]
    assert not found.losses and not operation().needs_proof(known(), found)
    said = " ".join(found.warnings)
    assert "this box does not store the key: tank/photos/secret" in said and "No backup is sent" in said
    assert f"fetched from attic.lan, about 1 GB, to {SCRATCH}" in found.summary


def changed(name: str, **changes: Any) -> Facts:
    found = known()
    return replace(
        found, datasets=tuple(replace(one, **changes) if one.name == name else one for one in found.datasets)
    )


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (known(remotes=()), "remote-missing"),
        (known(remotes=(replace(REMOTE, host_key=""),)), "remote-not-confirmed"),
        (known(remotes=(replace(REMOTE, offered_key=OTHER),)), "remote-key-changed"),
        (changed("tank/photos", backup=""), "backup-missing"),
        (
            changed("tank/photos", backup=encode_tasks((BackupTask(key=KEY, pool=2000, path="backups/photos"),))),
            "backup-missing",
        ),
        (known(datasets=TREE), "folder-missing"),
        (changed("tank/photos/secret", key_status="unavailable"), "dataset-locked"),
        (changed("tank", readonly=True), "dataset-read-only"),
        (changed("tank", available=10**9, used=10**12), "drill-no-room"),
        (known(dataset(SCRATCH)), "dataset-exists"),
    ],
)
def test_what_cannot_be_tested_is_refused_beforehand(found, code):
    with expect_refusal(code):
        checked_plan(operation(), found)


@pytest.mark.parametrize(
    "changes", [{"remote": "x"}, {"key": "x"}, {"pool": "../tank"}, {"dataset": "tank@s"}, {"pool": "tank/photos"}]
)
def test_what_is_no_backup_is_refused(changes):
    with pytest.raises(Refused):
        operation(**changes)


@pytest.mark.parametrize(
    ("hello", "tree", "code"),
    [
        (HELLO, THERE, "remote-script-old"),
        (NEW_HELLO.replace(",send", ""), THERE, "remote-send-missing"),
        (NEW_HELLO, {}, "drill-nothing-common"),
        (NEW_HELLO, {"photos": (55, 999, False)}, "drill-nothing-common"),
        (NEW_HELLO, {"photos": (99, 101, False)}, "drill-nothing-common"),  # the mark of another folder
        (NEW_HELLO, {"other": (55, 101, False)}, "drill-nothing-common"),
    ],
)
def test_what_the_other_computer_does_not_have_is_refused_before_anything_is_made(peer, zfs, hello, tree, code):  # noqa: F811
    peer.hello, peer.tree = hello, listing(tree)
    before = dict(zfs.own)
    with expect_refusal(code):
        run(plan())
    assert zfs.own == before


def test_computer_that_does_not_answer_stops_it_before_anything_is_made(peer, zfs, monkeypatch):  # noqa: F811
    def ask(remote: Remote, *_words: object, **_how: object) -> str:
        raise connection.unreachable(remote, "Connection refused")

    monkeypatch.setattr(connection, "ask", ask)
    before = dict(zfs.own)
    with pytest.raises(Failed, match="Nothing answers"):
        run(plan())
    assert zfs.own == before


def test_copy_that_is_larger_than_what_is_known_here_is_refused_without_room(peer, zfs):  # noqa: F811
    peer.tree = listing(THERE).replace(f"\t{10**9}\n", f"\t{10**12}\n")
    before = dict(zfs.own)
    with expect_refusal("drill-no-room"):
        run(plan())
    assert zfs.own == before


# --- what is done ---------------------------------------------------------------------------------------------------
def test_everything_is_fetched_by_guid_compared_with_the_originals_and_removed(peer, zfs, streams, compared):  # noqa: F811
    before = {name: dict(values) for name, values in zfs.own.items()}
    notes = run(plan())
    assert peer.asked == [("hello",), ("tree", "photos")]
    assert streams.asked == ["send photos 101 large", "send photos/secret 103 raw", "send photos/trip_2019 102 large"]
    for words in streams.received:
        assert {f"larder:drill={KEY}", "canmount=noauto", "readonly=on", "setuid=off", "devices=off"} <= set(
            words
        ) and "-F" not in words
    assert "acltype=posix" in streams.received[0] and "acltype=posix" not in streams.received[2]
    assert streams.rates == [20 * 10**6] * 3
    assert compared == [(name + SNAP, PLACES[name] + SNAP) for name in ("tank/photos", "tank/photos/trip 2019")]
    found = result_of(notes)
    assert (found.parts, found.moved, found.files, found.different) == (3, 30, 8, 0)
    assert found.skipped == ("tank/photos/secret",) and not found.gone
    assert zfs.own == before


def test_newest_of_several_common_moments_is_fetched(peer, zfs, streams, compared):  # noqa: F811
    """What only one side has does not count, and the order is that of this box."""
    zfs.snapshots["tank/photos"] = [90, 101, 120]
    more = [
        f"safe/attic/photos@{short}\t{key}\t{value}"
        for short, guid, txg in (("older", 90, 9), ("only-there", 130, 10))
        for key, value in (("guid", guid), ("createtxg", txg), ("creation", 1764000900), ("referenced", 10**9))
    ]
    peer.tree = listing(THERE).replace("\nend\n", "\n" + "\n".join(more) + "\nend\n")
    run(plan())
    assert streams.asked[0] == "send photos 101 large"


def test_folder_without_a_common_moment_is_left_out_and_named(peer, zfs, streams, compared):  # noqa: F811
    zfs.snapshots["tank/photos/trip 2019"] = [7]
    notes = run(plan())
    assert [asked.split()[1] for asked in streams.asked] == ["photos", "photos/secret"]
    assert result_of(notes).skipped == ("tank/photos/trip 2019", "tank/photos/secret")
    assert any("tank/photos/trip 2019 was not restored" in note for note in notes)


@pytest.mark.parametrize(("stored", "files"), [("the phrase of the attic", 12), ("a wrong phrase", 8)])
def test_encrypted_folder_is_opened_with_the_stored_key(peer, zfs, streams, compared, stored, files):  # noqa: F811
    key_store.key_path(SECRET_GUID).write_text(stored)
    notes = run(plan())
    assert ["zfs", "load-key", "-L", "prompt", "--", PLACES["tank/photos/secret"]] in zfs.ran
    assert stored not in " ".join(word for argv in zfs.ran for word in argv) + " ".join(notes)
    assert result_of(notes).files == files


def test_original_that_loses_that_moment_meanwhile_is_compared_with_nothing_else(peer, zfs, streams, compared):  # noqa: F811
    """Neither with a later moment nor with a dataset of this box that is called as the copy there."""
    work = Working()
    steps = plan().steps
    for step in steps:
        if step.name == "compare":
            zfs.snapshots["tank/photos"] = [120]
            zfs.own["safe/attic/photos"], zfs.snapshots["safe/attic/photos"] = {}, [101]
        step.run(work)
    assert [pair[0] for pair in compared] == [f"tank/photos/trip 2019{SNAP}"]
    assert "tank/photos" in result_of(work.notes).skipped


def test_difference_fails_with_its_path_and_nothing_stays(peer, zfs, streams, compared):  # noqa: F811
    drill_base.compare_opened.different = ("tank/photos/trip 2019",)  # type: ignore[attr-defined]
    work = Working()
    with pytest.raises(Failed, match=r"Differences .* \(1\): one\.jpg: has different contents"):
        for step in plan().steps:
            step.run(work)
    assert result_of(work.notes).differences == ("one.jpg: has different contents",)
    assert not left_of_it(zfs)


# --- what another computer may not do -------------------------------------------------------------------------------
def test_more_than_was_asked_for_is_not_compared_and_goes(peer, zfs, streams, compared):  # noqa: F811
    streams.brings = [7]
    with pytest.raises(Failed):
        run(plan())
    assert not compared and not left_of_it(zfs)


def test_dataset_that_came_along_goes_too_though_no_drill_has_marked_it(peer, zfs, streams, compared):  # noqa: F811
    streams.below = "extra"
    with pytest.raises(Failed, match="sent more of"):
        run(plan())
    assert not compared and not left_of_it(zfs)


def test_no_more_is_taken_than_the_test_may_use_and_no_holds(peer, zfs, streams, compared):  # noqa: F811
    """What the other computer says of its size is its word."""
    run(plan())
    made = next(argv for argv in zfs.ran if argv[:2] == ["zfs", "create"])
    free = operation().drill.free(known())
    assert f"quota={free}" in made and 0 < free < known().dataset("tank").available  # type: ignore[union-attr]
    assert all("-h" in words for words in streams.received)


def test_properties_that_came_along_stop_it(peer, zfs, streams, compared, monkeypatch):  # noqa: F811
    answer = zfs.answer
    monkeypatch.setattr(zfs, "answer", lambda argv: "mountpoint\t/etc\n" if "received" in argv else answer(argv))
    with pytest.raises(Failed, match="sent settings"):
        run(plan())
    assert not compared and not left_of_it(zfs)


# --- however it ends ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "error",
    [NotReceived(1, "cannot receive: incomplete stream", 255, "Connection reset"), OSError(5, "Input/output error")],
)
def test_failure_leaves_nothing(zfs, streams, error):  # noqa: F811
    streams.fails = error
    with pytest.raises((Failed, OSError)):
        run(plan())
    assert streams.asked and not left_of_it(zfs)


def test_stopping_leaves_nothing(zfs, streams):  # noqa: F811
    streams.fails = Cancelled()
    with pytest.raises(Cancelled):
        run(plan())
    assert PLACES["tank/photos"] in zfs.own
    operation().clean_up(Working())
    assert not left_of_it(zfs)


class Killed(BaseException):
    """As SIGKILL does it: nothing else is done."""


def test_next_test_removes_what_a_killed_one_left(zfs, streams, compared):  # noqa: F811
    streams.fails = Killed()
    with pytest.raises(Killed):
        run(plan())
    assert PLACES["tank/photos"] in zfs.own
    streams.fails = None
    left = [dataset(name, properties={"larder:drill": Property(KEY, "local")}) for name in left_of_it(zfs)]
    now = known(*left)
    assert not any(operation().probe(step.name, now) for step in plan().steps)
    assert "Larder removes it" in operation().recovery_hint("restore-5", now)
    assert result_of(run(checked_plan(operation(), now))).files == 8
    assert not left_of_it(zfs)


def test_time_is_told_by_the_pace_of_the_last_transfer_or_the_limit():
    assert "the pace of the last transfer" in operation().time_text(known())
    quick = known(remotes=(replace(REMOTE, pace=10**9),))
    assert "the limit" in operation().time_text(quick)
    with pytest.raises(Refused):
        operation().time_text(known(remotes=()))
