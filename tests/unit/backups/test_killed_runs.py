"""Runs that end in the middle: killed before each call of ZFS, between two folders, and with what
they need gone afterwards."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.backups.run_backup import RunBackup
from appliance.errors import Failed
from tests.unit.backups.two_pools import SECRET, TOP, TREE, TRIP, Killed, TwoPools, target_of
from tests.unit.pools.test_create import Working

COPY = target_of(TOP.name)


@pytest.fixture
def pools(monkeypatch) -> TwoPools:
    return TwoPools(monkeypatch)


def position(calls: list[str], what: str) -> int:
    (found,) = [at for at, call in enumerate(calls) if call == what]
    return found


def test_bookmark_is_there_before_the_stream_and_nothing_goes_before_the_copy_lists_what_was_sent(pools):
    for _run in range(7):  # so many that bookmarks go too
        pools.write(TOP.name)
        former = pools.newest(TOP.name)
        pools.back_up()
    assert former
    snapshot = pools.newest(TOP.name)
    assert snapshot
    sent, arrived = (position(pools.calls, f"{what} {snapshot.name}") for what in ("send", "arrived"))
    marked = position(pools.calls, "bookmark")
    listed = next(at for at, call in enumerate(pools.calls) if at > arrived and call == f"list {COPY}")
    gone = [at for at, call in enumerate(pools.calls) if call.startswith(f"destroy {TOP.name}#")]
    assert marked < sent < arrived < listed < position(pools.calls, f"destroy {former.name}") < min(gone)


def test_nothing_goes_where_the_copy_does_not_list_what_was_sent(pools):
    """Whatever the receiver said at its end."""
    pools.back_up()
    pools.write(TOP.name)
    snapshots, marks = set(pools.snapshots), set(pools.marks)
    pools.loses_streams = True
    with pytest.raises(Failed, match="does not show"):
        pools.back_up()
    assert snapshots <= set(pools.snapshots) and marks <= set(pools.marks)
    pools.loses_streams = False
    pools.back_up()
    pools.assert_complete()


@pytest.mark.parametrize("kind", ["first copy", "increment", "increment after an interrupted one"])
def test_run_that_is_killed_before_any_call_of_zfs_is_completed_by_the_next(monkeypatch, kind):
    """No stream is sent twice, and what was half received is gone on with.
    ``TwoPools`` looks at the rest at each call."""
    for at in itertools.count():
        pools = TwoPools(monkeypatch)
        if kind != "first copy":
            pools.back_up()
            pools.write(TOP.name, SECRET.name)
        if kind == "increment after an interrupted one":
            interrupt(pools, f"half of {TOP.name}@")
            pools.write(TRIP.name)
        try:
            pools.back_up(kill_at=at)
        except Killed as killed:
            before = str(killed)
        else:
            break
        half = dict(pools.rests)
        pools.back_up()
        pools.assert_complete()
        streams = [(copy, guid) for copy, guid, _base in pools.arrived]
        assert len(streams) == len(set(streams)), f"killed before {before}: something was sent twice"
        assert pools.discarded == [], f"killed before {before}"
        for copy, token in half.items():
            assert (copy, token.to_guid, token.text) in pools.arrived, f"killed before {before}: {copy} did not go on"
        # Killed after its stream had arrived, a run has let nothing go; the next that sends something does.
        pools.write(TOP.name)
        pools.back_up()
        assert all(len(pools.of(one.name)) == 1 for one in (TOP, SECRET)), f"killed before {before}: snapshots stay"
    pools.assert_complete()
    assert at > 30


def interrupt(pools: TwoPools, before: str) -> None:
    """A run that is killed before a call that begins so."""
    original = pools.call

    def call(what: str) -> None:
        if what.startswith(before):
            raise Killed(what)
        original(what)

    pools.call = call  # type: ignore[method-assign]
    with pytest.raises(Killed):
        pools.back_up()
    pools.call = original  # type: ignore[method-assign]


def test_run_that_is_killed_between_two_folders_is_completed_by_the_next_which_sends_nothing_twice(pools):
    pools.back_up()
    pools.write(*(one.name for one in TREE))
    done = len(pools.arrived)
    steps = pools.steps(pools.operation())
    for step in steps:
        if step.name == f"copy-{SECRET.guid}":
            break  # killed as it begins
        step.run(Working())
    assert [copy for copy, _guid, _base in pools.arrived[done:]] == [COPY]
    work = pools.back_up()
    assert [copy for copy, _guid, _base in pools.arrived[done:]] == [target_of(one.name) for one in TREE]
    assert "Nothing new in 1 of 3 folders: their copies are complete." in work.notes
    pools.assert_complete()


@pytest.mark.parametrize("made_again", [False, True], ids=["destroyed", "made again by that name"])
def test_rest_of_a_snapshot_that_is_gone_is_discarded_once_and_the_increment_is_sent(pools, made_again):
    pools.back_up()
    pools.write(TOP.name)
    interrupt(pools, f"half of {TOP.name}@")
    gone = pools.newest(TOP.name)
    assert gone and pools.rests[COPY].to_name == gone.name
    pools.snapshots.remove(gone)
    if made_again:
        pools.add(gone.name, 9999)
    done = len(pools.arrived)
    pools.back_up()
    assert pools.discarded == [COPY]
    assert [base.partition("-backup-")[0] for copy, _guid, base in pools.arrived[done:] if copy == COPY] == [
        f"{TOP.name}@larder"
    ]
    pools.assert_complete()
    pools.write(TOP.name)
    pools.back_up()
    assert pools.discarded == [COPY]
    pools.assert_complete()


def test_name_that_another_snapshot_has_at_the_copy_is_refused_and_the_next_run_goes_on(pools):
    pools.back_up()
    pools.write(TOP.name)
    operation = pools.operation()
    pools.snapshots = [
        one if one.dataset != COPY else replace(one, name=f"{COPY}@{operation.short}") for one in pools.snapshots
    ]  # as somebody who sets the clock back, or renames it
    before, marks = list(pools.snapshots), dict(pools.marks)
    steps = pools.steps(operation)
    with pytest.raises(Failed, match=rf"1 of 3 folders.*{COPY} already has another snapshot called {operation.short}"):
        for step in steps:
            step.run(Working())
    at_top = [one for one in before if one.dataset in (TOP.name, COPY)]
    assert [one for one in pools.snapshots if one.dataset in (TOP.name, COPY)] == at_top, "the run took its own back"
    assert {mark: of for mark, of in pools.marks.items() if f"{TOP.name}#" in mark} == {
        mark: of for mark, of in marks.items() if f"{TOP.name}#" in mark
    }
    pools.back_up()
    pools.assert_complete()


def test_run_that_is_tried_again_takes_a_snapshot_of_its_own(pools):
    """Its old name may be taken: by what it has left itself, or at the copy."""
    pools.back_up()
    pools.write(TOP.name)
    interrupt(pools, f"half of {TOP.name}@")
    killed = RunBackup(dataset=TOP.name, key="0123abcd", target=COPY, moment=pools.short[-19:])
    again = killed.again(pools.facts())
    at = snapshot_names.parse_moment(again.moment)
    assert at and abs(datetime.now(UTC) - at) < timedelta(minutes=5)
    assert (again.dataset, again.key, again.target) == (killed.dataset, killed.key, killed.target)
    for step in pools.steps(again):
        step.run(Working())
    pools.assert_complete()
