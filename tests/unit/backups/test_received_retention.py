"""Retention of copies that another Larder brings: the rule against a sender that lies, and what the agent destroys."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.backups import copies, match, unchanged
from appliance.backups.pairing import receivers
from appliance.backups.pairing.prune_received import CopiesInUse, ReadCopiesInUse
from appliance.backups.pairing.set_retention import SetReceivedRetention, silent_since
from appliance.backups.retention import expired_copies, expired_received
from appliance.errors import Failed
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Property, Snapshot
from appliance.facts.kept_copies import Keep
from appliance.facts.receiver import Receiver
from appliance.operation import Operation, checked_plan
from appliance.snapshot_names import format_moment
from appliance.system import paths
from appliance.zfs import libzfs, list_snapshots
from tests.reasons import expect_refusal
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import Working

NOW = datetime.now(UTC).replace(minute=30, second=0, microsecond=0)
ROOT, COPY = "safe/backups/attic", "safe/backups/attic/photos"
OTHER = f"{ROOT}/music"
MARK, COPIES_MARK = '{"guid":5,"raw":false}', '{"guid":0,"raw":false}'
PAIRED = Receiver(
    "0badcafe",
    ROOT,
    77,
    NOW - timedelta(days=90),
    public_key="ssh-ed25519 A",
    keep=Keep(hourly=0, daily=2, weekly=0, monthly=0),
)
DAILY = Keep(hourly=0, daily=3, weekly=0, monthly=0)


def snapshot(number: int, created: datetime, copy: str = COPY, short: str = "", **changes: Any) -> Snapshot:
    """The one that arrived as the ``number``th."""
    short = short or f"larder-backup-{format_moment(created)}"
    return Snapshot(f"{copy}@{short}", 1000 + number, 100 + number, created, **changes)


def days(count: int, copy: str = COPY) -> list[Snapshot]:
    """One for each of the last days, the oldest first."""
    return [snapshot(number, NOW - timedelta(days=count - number), copy) for number in range(count)]


def gone(copies_: list[Snapshot], keep: Keep = DAILY, needed: tuple[int, ...] = ()) -> list[int]:
    return [one.guid for one in expired_received(copies_, keep, NOW, UTC, needed)]


# --- the rule -------------------------------------------------------------------------------------------------------
def test_of_each_day_the_newest_stays():
    assert gone(days(6)) == [1000, 1001, 1002]


def test_newest_stays_whatever_is_kept_and_whatever_it_is_called():
    nothing = Keep(hourly=0, daily=0, weekly=0, monthly=0)
    assert gone(days(3), nothing) == [1000, 1001]
    assert gone([*days(3), snapshot(9, NOW, short="by-hand")], nothing) == [1000, 1001]


def test_held_cloned_needed_and_foreign_ones_stay():
    found = days(7)
    found[0] = replace(found[0], holds=1)
    found[1] = replace(found[1], clones=("safe/clone",))
    found[2] = replace(found[2], name=f"{COPY}@larder-daily-{format_moment(found[2].created)}")
    assert gone(found, needed=(1003,)) == []
    assert gone(found) == [1003]


def test_one_dated_after_now_stays_and_takes_no_place():
    ahead = snapshot(4, NOW + timedelta(days=400))
    found = [*days(4), ahead, snapshot(5, NOW)]
    assert gone(found) == [1000, 1001]
    # It is no more believed once its moment has come: what arrived later is dated earlier.
    later = NOW + timedelta(days=500)
    assert [one.guid for one in expired_received(found, DAILY, later, UTC)] == [1000, 1001]


def test_dates_of_the_past_take_no_place():
    """The sender was taken over today, and sends snapshots with made-up dates."""
    made_up = [snapshot(10 + number, NOW - timedelta(days=30 * number)) for number in range(40)]
    stays = {one.guid for one in days(4)} - set(gone([*days(4), *made_up]))
    assert {1002, 1003} <= stays


HOURS = st.one_of(st.integers(-24 * 900, 24 * 900), st.integers(-24 * 60, 24 * 2))
KEPT = (DAILY, Keep(), Keep(hourly=2, daily=2, weekly=2, monthly=2), Keep(hourly=0, daily=30, weekly=0, monthly=0))
WEEKLY = (7 * 24,) * 30


# The lies that believing the later alone did not bear: each stands where a copy that is rarer than that leaves a place.
@example([24 * -number for number in range(29, -1, -1)], WEEKLY, KEPT[3])
@example([-3, -2], (24,) * 30, Keep())
@given(
    st.lists(HOURS, max_size=40).flatmap(lambda found: st.sampled_from([found, sorted(found)])),
    st.lists(st.integers(1, 24 * 30), min_size=1, max_size=40).map(tuple),
    st.sampled_from(KEPT),
)
def test_sender_that_lies_pushes_out_no_more_than_one_honest_copy_would(hours, gaps, keep):
    """``gaps``: hours between the copies that came before the sender was taken over, the
    last of them 20 minutes ago."""
    ages = list(accumulate(reversed(gaps)))[::-1]
    honest = [snapshot(number, NOW - timedelta(hours=age)) for number, age in enumerate(ages)]
    honest.append(snapshot(90, NOW - timedelta(minutes=20)))
    lies = [snapshot(100 + number, NOW + timedelta(hours=at)) for number, at in enumerate(hours)]
    assert set(gone([*honest, *lies], keep)) & {one.guid for one in honest[:-1]} <= set(gone(honest, keep))


@given(st.lists(st.integers(0, 24 * 60 * 30), max_size=40), st.sampled_from(KEPT))
def test_without_lies_the_count_is_the_one_of_other_backups(gaps, keep):
    """``gaps``: minutes between the copies."""
    ages = list(accumulate(reversed(gaps)))[::-1]
    honest = [snapshot(number, NOW - timedelta(minutes=age)) for number, age in enumerate(ages)]
    assert gone(honest, keep) == [one.guid for one in expired_copies(honest, keep, UTC)]


# --- what the agent notes -------------------------------------------------------------------------------------------
def facts(*known: Snapshot, receiver: Receiver = PAIRED, mark: str = MARK) -> Facts:
    root = dataset(ROOT, guid=77, copy_of=COPIES_MARK, properties={"larder:receives": Property("yes", "local")})
    found = (dataset("safe", guid=7), root, dataset(COPY, copy_of=mark), dataset(OTHER, copy_of=mark))
    return box(pools=(Pool("safe", 9, "ONLINE"),), datasets=found, snapshots=known, receivers=(receiver,))


@pytest.mark.parametrize(
    ("now", "then", "waits"),
    [
        (None, Keep(), True),
        (Keep(), None, False),
        (Keep(), Keep(), False),
        (Keep(daily=5), Keep(daily=4), True),
        (Keep(daily=5), Keep(daily=6), False),
    ],
)
def test_to_keep_fewer_copies_needs_the_password(now, then, waits):
    known = facts(receiver=replace(PAIRED, keep=now))
    made = SetReceivedRetention(receiver=PAIRED.id, keep=then)
    plan = checked_plan(made, known)
    assert made.needs_proof(known, plan) is waits
    assert bool(plan.losses) is waits


@pytest.mark.parametrize(
    ("now", "then", "waits"), [(7, 8, True), (7, 7, False), (7, 3, False), (7, 0, True), (0, 366, False)]
)
def test_to_be_alerted_later_needs_the_password(now, then, waits):
    known = facts(receiver=replace(PAIRED, days=now))
    made = SetReceivedRetention(receiver=PAIRED.id, keep=PAIRED.keep, days=then)
    assert made.needs_proof(known, checked_plan(made, known)) is waits


def test_retention_is_noted_in_the_file_of_the_pairing(folders: Path):
    receivers.write_receiver(replace(PAIRED, keep=None))
    made = SetReceivedRetention(receiver=PAIRED.id, keep=Keep(daily=9), days=30)
    before = facts(receiver=replace(PAIRED, keep=None))
    assert not made.probe("note", before)
    checked_plan(made, before).steps[0].run(Working())
    (found,) = receivers.read_receivers()
    assert found == replace(PAIRED, keep=Keep(daily=9), days=30)
    assert made.probe("note", facts(receiver=found))


def test_file_of_an_earlier_larder_keeps_everything(folders: Path):
    receivers.write_receiver(PAIRED)
    file = receivers.receiver_file(PAIRED.id)
    early = {key: value for key, value in json.loads(file.read_bytes()).items() if key not in {"keep", "days", "seen"}}
    file.write_text(json.dumps(early))
    assert [(one.keep, one.days) for one in receivers.read_receivers()] == [(None, 7)]


def test_last_visit_is_that_of_the_file_that_the_other_box_touches(folders: Path):
    receivers.write_receiver(PAIRED)
    assert receivers.read_visits() == (PAIRED,)
    file = paths.RECEIVE / receivers.VISITS / PAIRED.id
    file.parent.mkdir()
    file.touch()
    os.utime(file, (0, NOW.timestamp() + 59))
    assert receivers.read_visits() == (replace(PAIRED, seen=NOW),)
    file.unlink()
    file.symlink_to("/etc/passwd")  # whoever took over that user could leave anything there
    assert receivers.read_visits()[0].seen is not None
    assert receivers.read_receivers() == (PAIRED,)


def test_pairing_that_was_removed_is_not_set():
    with expect_refusal("receiver-missing"):
        checked_plan(SetReceivedRetention(receiver="1badcafe"), facts())


def test_days_are_bounded():
    with expect_refusal("silent-days-out-of-range"):
        SetReceivedRetention(receiver=PAIRED.id, days=367)


def test_box_counts_as_here_by_whatever_is_known_last():
    seen = NOW - timedelta(days=1)
    assert silent_since(PAIRED, None, NOW) is None
    assert silent_since(
        replace(PAIRED, paired=NOW - timedelta(days=9)), NOW - timedelta(days=3), NOW
    ) == NOW - timedelta(days=3)
    assert silent_since(replace(PAIRED, seen=seen), NOW - timedelta(days=3), NOW) == seen
    assert silent_since(replace(PAIRED, seen=seen, public_key=""), None, NOW) is None


def test_moment_that_was_noted_while_the_clock_was_ahead_silences_no_alert():
    seen, ahead = NOW - timedelta(days=8), NOW + timedelta(days=5000)
    assert silent_since(replace(PAIRED, seen=seen, paired=ahead), None, NOW) == seen
    assert silent_since(replace(PAIRED, seen=ahead, paired=seen), None, NOW) == seen


# --- what the agent destroys ----------------------------------------------------------------------------------------
class Place:
    """ZFS and the processes of the other box, as the step finds them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *known: Snapshot) -> None:
        self.known = list(known)
        self.values: dict[str, dict[str, str]] = {
            ROOT: {"guid": "77"},
            **{name: {"larder:copy-of": MARK} for name in (COPY, OTHER)},
        }
        self.in_use: set[str] = set()
        self.token = match.Token("1-a", 0, "")
        self.broken = ""
        self.destroyed: list[str] = []
        monkeypatch.setattr(copies, "read_values", lambda name, _wanted: self.values.get(name, {}))
        monkeypatch.setattr(copies, "read_token", lambda _text: self.token)
        monkeypatch.setattr(receivers, "copies_in_use", lambda _receiver: self.in_use)
        monkeypatch.setattr(list_snapshots, "list_snapshots", self.snapshots_of)
        monkeypatch.setattr(libzfs, "destroy_snapshots", self.destroy)

    def snapshots_of(self, names: list[str]) -> list[Snapshot]:
        if self.broken in names:
            raise Failed(f"{self.broken} cannot be listed", "I/O error")
        return [one for one in self.known if one.dataset in names]

    def destroy(self, names: list[str]) -> tuple[()]:
        self.destroyed += names
        return ()


@pytest.fixture
def place(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    receivers.write_receiver(PAIRED)
    return Place(monkeypatch, *days(5), *days(5, OTHER))


def asked(*chosen: list[Any]) -> Operation:
    return decode_operation(json.dumps({"kind": "prune-received", "receiver": PAIRED.id, "snapshots": chosen}))


def prune(place: Place, *chosen: Snapshot, receiver: Receiver = PAIRED) -> list[str]:
    """What the job notes."""
    made = asked(*([one.name, one.guid] for one in chosen))
    work = Working()
    for step in checked_plan(made, facts(*days(5), *days(5, OTHER), receiver=receiver)).steps:
        step.run(work)
    return work.notes


def names(found: list[Snapshot]) -> list[str]:
    return [one.name for one in found]


def test_only_what_is_no_longer_kept_is_destroyed(place):
    prune(place, *days(5))
    assert place.destroyed == names(days(5)[:3])


def test_request_for_what_is_kept_is_refused(place):
    with expect_refusal("snapshots-missing"):
        prune(place, *days(5)[3:])
    with expect_refusal("snapshots-missing"):
        prune(place, *days(5), receiver=replace(PAIRED, keep=None))
    with expect_refusal("receiver-missing", "snapshots-missing"):
        prune(place, *days(5), receiver=replace(PAIRED, guid=78))
    assert place.destroyed == []


@pytest.mark.parametrize("wrong", [["tank/photos@a", 5], ["safe/backups/attic@a", 5], ["safe/other/attic/photos@a", 5]])
def test_snapshots_of_anything_else_are_refused(wrong):
    with expect_refusal("not-received-copies"):
        asked(wrong)


def test_snapshots_of_two_boxes_are_refused():
    with expect_refusal("not-received-copies"):
        asked([f"{COPY}@a", 5], ["safe/backups/b/c@a", 6])


def test_copy_is_looked_at_again_at_its_turn(place):
    """What was held, or taken anew under the same name, since the job was planned."""
    place.known[0] = replace(place.known[0], holds=1)
    place.known[1] = replace(place.known[1], guid=9)
    prune(place, *days(5))
    assert place.destroyed == names(days(5)[2:3])


def test_retention_that_was_widened_since_is_the_one_that_counts(place):
    receivers.write_receiver(replace(PAIRED, keep=Keep()))
    prune(place, *days(5))
    assert place.destroyed == []


def test_nothing_is_destroyed_after_the_pairing_or_its_folder_is_gone(place):
    place.values[ROOT] = {"guid": "78"}
    with expect_refusal("receiver-missing"):
        prune(place, *days(5))
    receivers.receiver_file(PAIRED.id).unlink()
    with expect_refusal("receiver-missing"):
        prune(place, *days(5))
    assert place.destroyed == []


def test_copy_that_is_received_to_is_left_alone(place):
    place.in_use = {COPY}
    notes = prune(place, *days(5), *days(5, OTHER))
    assert place.destroyed == names(days(5, OTHER)[:3])
    assert any(COPY in note and "in use" in note for note in notes)


def test_copy_that_was_set_aside_is_left_alone(place):
    place.values[COPY] = {"larder:copy-of": COPIES_MARK}
    prune(place, *days(5))
    assert place.destroyed == []


def test_what_a_half_received_copy_goes_on_from_stays(place):
    place.values[COPY]["receive_resume_token"] = "1-a"
    prune(place, *days(5))
    assert place.destroyed == []  # nobody knows from which one
    place.token = match.Token("1-a", 5, "tank/photos@x", 1001)
    prune(place, *days(5))
    assert place.destroyed == [days(5)[0].name, days(5)[2].name]


def test_copy_that_fails_keeps_no_other_from_being_pruned(place):
    place.broken = COPY
    with pytest.raises(Failed, match="Some copies"):
        prune(place, *days(5), *days(5, OTHER))
    assert place.destroyed == names(days(5, OTHER)[:3])


def test_copies_in_use_are_read_from_the_words_of_processes(monkeypatch):
    words = [
        (1, ["zfs", "receive", "-u", "-s", COPY, ""]),
        (2, ["zfs", "send", f"{OTHER}@x", ""]),
        (3, ["sh", ROOT]),
        (4, ["zfs", "receive", "safe/backups/attic2/x"]),
    ]
    monkeypatch.setattr(receivers, "running", lambda: iter(words))
    assert receivers.copies_in_use(PAIRED) == {COPY, OTHER}


def test_worker_is_told_which_copies_stay_for_now(place, monkeypatch):
    """Those in use, those of which nobody knows from where they go on, and from where the others do."""
    tokens = {"1-a": match.Token("1-a", 5, "tank/photos@x", 1001), "1-b": match.Token("1-b", 0, "")}
    third = f"{ROOT}/third"
    below = {COPY: {copies.RESUME: "1-a"}, OTHER: {copies.RESUME: "1-b"}, third: {}}
    monkeypatch.setattr(unchanged, "read_below", lambda root, _wanted: below if root == ROOT else {})
    monkeypatch.setattr(copies, "read_token", tokens.__getitem__)
    place.in_use = {third}
    told = ReadCopiesInUse(receiver=PAIRED.id).read()
    assert told == CopiesInUse((OTHER, third), (1001,))
    assert msgspec.convert(msgspec.to_builtins(told), CopiesInUse) == told
    with expect_refusal("receiver-missing"):
        ReadCopiesInUse(receiver="1badcafe").read()


def test_prune_needs_no_proof_as_the_agent_decides():
    made = asked(*([one.name, one.guid] for one in days(5)))
    known = facts(*days(5))
    assert not made.needs_proof(known, checked_plan(made, known))
