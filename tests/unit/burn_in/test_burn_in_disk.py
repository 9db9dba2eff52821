from __future__ import annotations

import json
import os

import pytest

from appliance import command
from appliance.agent.registry import decode_operation
from appliance.burn_in import burn_in_disk
from appliance.burn_in.burn_in_disk import BurnInDisk
from appliance.burn_in.regions import decode_results, split_disk
from appliance.command import Result
from appliance.disks.exclusive_disk import ExclusiveDisk
from appliance.errors import Failed, Refused
from appliance.facts.box import Use
from appliance.layout.geometry import MIB
from appliance.operation import as_json, checked_plan
from tests.reasons import codes, expect_refusal
from tests.unit.made import BUSY, OLD, box, disk, path_of, recorded_text
from tests.unit.pools.test_create import Working

SIZE = 400 * MIB
REGIONS = split_disk(SIZE)


def operation(first: int = 1, count: int = 1, **changes) -> BurnInDisk:
    return BurnInDisk(**{"disk": path_of(1), "size": SIZE, "first": first, "count": count, **changes})


def small(**changes):
    return disk(1, size=SIZE, **changes)


@pytest.mark.parametrize(
    "use",
    [
        OLD,
        BUSY,
        Use("unknown", "holds data of a kind that Larder does not recognise"),
        Use("unreadable", "cannot be read"),
    ],
)
def test_disk_that_holds_anything_is_refused(use):
    assert codes(operation().check(box(small(uses=(use,))))) == ["burn-in-disk-in-use"]


def test_disk_that_is_gone_or_another_is_refused():
    assert codes(operation().check(box(disk(2)))) == ["disk-missing"]
    assert codes(operation().check(box(disk(1)))) == ["burn-in-size-changed"]


@pytest.mark.parametrize(("first", "count"), [(-1, 1), (0, 0), (0, 21), (11, 2), (99, 1)])
def test_only_regions_of_the_disk_are_taken(first, count):
    with expect_refusal("burn-in-region-missing"):
        operation(first, count)


@pytest.mark.parametrize("rate", [-1, 1000, 2**50])
def test_only_a_sensible_limit_is_taken(rate):
    with expect_refusal("burn-in-rate-invalid"):
        operation(rate=rate)


def test_it_locks_and_reads_the_disk_and_leaves_room_for_others():
    assert operation().locks() == operation().disks_taken() == (path_of(1),)
    assert operation().lasts()


def test_plan_shows_a_step_for_each_region_with_its_commands():
    plan = checked_plan(operation(0, 3), box(small()))
    assert [step.name for step in plan.steps] == ["region-0", "region-1", "region-2"]
    assert plan.losses == ()
    assert not operation().needs_proof(box(small()), plan)
    assert "--rw=write" in plan.steps[1].command_text
    assert "--rw=read" in plan.steps[1].command_text
    assert path_of(1) in plan.steps[1].command_text


def test_same_plan_after_a_journey_through_json():
    facts = box(small())
    again = decode_operation(as_json(operation(2, 3, rate=20 * 10**6)))
    assert checked_plan(again, facts).digest() == checked_plan(operation(2, 3, rate=20 * 10**6), facts).digest()
    with pytest.raises(Refused):
        decode_operation(json.dumps({"kind": "burn-in-disk", "disk": "/dev/sda", "size": SIZE}))


class Fio:
    """Answers as fio with what was recorded, with the amount that was asked for;
    ``says`` are other answers, in turn."""

    def __init__(self, *says: Result | Exception) -> None:
        self.says = list(says)
        self.asked: list[list[str]] = []
        self.held: list[int | None] = []

    def __call__(self, argv, *, holding=None, meanwhile=None, **_more) -> Result:
        self.asked.append(list(argv))
        self.held.append(holding)
        if meanwhile:
            meanwhile()
        said = self.says.pop(0) if self.says else None
        if isinstance(said, Exception):
            raise said
        if said:
            return said
        size = next(word.removeprefix("--size=") for word in argv if word.startswith("--size="))
        way = "write" if "--rw=write" in argv else "read"
        told = json.loads(recorded_text("fio-verify-3.39.json"))
        for name in ("read", "write"):
            told["jobs"][0][name]["io_bytes"] = int(size) if name == way else 0
        return Result(tuple(argv), 0, json.dumps(told), "", 1.0)


class Held(ExclusiveDisk):
    """A file that stands for the disk: opened as one, without asking for exclusive use."""

    size_now = SIZE

    def __init__(self, _path: str) -> None:
        super().__init__(os.devnull, size_of=lambda _handle: Held.size_now)


@pytest.fixture
def fio(monkeypatch: pytest.MonkeyPatch) -> Fio:
    found = Fio()
    monkeypatch.setattr(command, "run", found)
    monkeypatch.setattr(burn_in_disk, "ExclusiveDisk", Held)
    monkeypatch.setattr(burn_in_disk, "inspect_disk", lambda _disk: None)
    monkeypatch.setattr(Held, "size_now", SIZE)
    return found


def run(count: int = 1, first: int = 1, **changes: int) -> Working:
    work = Working()
    for step in checked_plan(operation(first, count, **changes), box(small())).steps:
        step.run(work)
    return work


def test_each_region_is_written_then_read_through_the_disk_that_is_held(fio):
    work = run(count=2)
    found = list(decode_results(work.notes))
    assert [(one.number, one.problem) for one in found] == [(1, ""), (2, "")]
    assert all(one.written and one.read for one in found)
    assert ["--rw=write" in words for words in fio.asked] == [True, False, True, False]
    for words, held in zip(fio.asked, fio.held, strict=True):
        assert f"--filename=/proc/self/fd/{held}" in words
    seeds = [next(word for word in words if word.startswith("--randseed=")) for words in fio.asked]
    assert seeds[0] == seeds[1] != seeds[2]


def test_limit_is_noted_with_what_was_measured_under_it(fio):
    (found,) = decode_results(run(rate=20 * 10**6).notes)
    assert found.rate == 20 * 10**6
    (found,) = decode_results(run().notes)
    assert found.rate == 0


def test_bad_region_is_noted_and_the_next_one_is_tested_all_the_same(fio):
    fio.says = [
        Result(
            ("fio",), 1, "", "fio: io_u error on file x: Input/output error: write offset=20971520, buflen=1048576", 1.0
        )
    ]
    first, second = decode_results(run(count=2).notes)
    assert (first.problem, first.at, first.read) == ("write", 20971520, 0)
    assert second.problem == ""
    assert len(fio.asked) == 3  # what could not be written is not read


def test_nothing_is_written_where_the_disk_is_no_longer_empty(fio, monkeypatch):
    monkeypatch.setattr(burn_in_disk, "inspect_disk", lambda _disk: Use("differs", "holds ext4 data"))
    with pytest.raises(Failed, match="holds ext4 data"):
        run()
    assert fio.asked == []


def test_pulled_disk_ends_the_job_and_is_not_called_a_bad_region(fio, monkeypatch):
    gone = Result(
        ("fio",), 1, "", "fio: io_u error on file x: Input/output error: write offset=20971520, buflen=1048576", 1.0
    )

    def pulled(argv, **more) -> Result:
        monkeypatch.setattr(Held, "size_now", 0)
        return gone

    monkeypatch.setattr(command, "run", pulled)
    with pytest.raises(Failed, match="no longer answers"):
        run()


def test_interrupted_region_is_never_taken_for_tested():
    assert not operation().probe("region-1", box(small()))
    assert "goes on" in operation().recovery_hint("region-1", box(small()))
    assert "put it back" in operation().recovery_hint("region-1", box(disk(2)))
