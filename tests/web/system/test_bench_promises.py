"""``make bench`` fails over each bound of the design, and not below: with made-up measurements, without a machine."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tests.benchmarks import __main__ as bench
from tests.benchmarks import in_use, pages, promises
from tests.benchmarks.figures import Result

WEB = "larder-web.service"
SECONDS = bench.IDLE_SECONDS
MB_A_DAY = 1e6 * SECONDS / 86400  # bytes in the seconds that idling is looked at
WITHIN = {"memory": 129.9, "unseen": 79.9, "reading": 1.99, "processor": 0.99, "written": 19.9}


def over(results: Iterable[Result]) -> list[str]:
    return [one.name for one in results if one.within_budget is False]


def used(memory: float = 0, processor: float = 0, written: float = 0) -> dict[str, dict[str, int]]:
    """All units; the web process alone takes MiB, a per cent of a core, MB a day."""
    found = {unit: {"pss": 0, "cpu": 0, "written": 0} for unit in bench.UNITS}
    cpu = processor / 100 * SECONDS * 1e6
    found[WEB] = {"pss": round(memory * promises.MIB), "cpu": round(cpu), "written": round(written * MB_A_DAY)}
    return found


class Clock:
    """Passes while somebody sleeps."""

    now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def monotonic(self) -> float:
        return self.now

    perf_counter = process_time = monotonic


@pytest.fixture
def box_in_use(monkeypatch, tmp_path) -> Callable[..., tuple[list[Result], object]]:
    """Runs the part ``memory`` of the bench over made-up measurements. Returns what it kept, and its exit status."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench", "memory"])
    appliance = SimpleNamespace(run=lambda *_argv, **_more: "")
    looked = SimpleNamespace(status=200)
    visitor = SimpleNamespace(
        get=lambda _path: looked, get_live=lambda _path: looked, wait_until=lambda *_a, **_m: None
    )
    monkeypatch.setattr(bench.states, "borrow_machine", lambda *_arguments: nullcontext(appliance))
    monkeypatch.setattr(bench.build, "build_system_layer", lambda: None)
    monkeypatch.setattr(bench.Visitor, "of_new", lambda _appliance: visitor)
    for name, answer in {"make_pool": "", "make_person": "", "key_of": "5", "set_share": "Done."}.items():
        monkeypatch.setattr(in_use.sharing, name, lambda *_a, answer=answer, **_m: answer)
    for module in (bench.machine, in_use):
        monkeypatch.setattr(module, "wait_for", lambda *_a, **_m: None)
    monkeypatch.setattr(bench, "time", Clock())
    monkeypatch.setattr(bench, "slowness", lambda _appliance: 1.0)
    monkeypatch.setattr(bench, "first_page", lambda _visitor: [])

    def run(**changes: float) -> tuple[list[Result], object]:
        measured = WITHIN | changes
        turns = iter(
            [
                used(measured["memory"]),
                used(measured["unseen"]),
                used(),
                used(0, measured["processor"], measured["written"]),
            ]
        )
        taken = iter([measured["reading"], 1.0])
        monkeypatch.setattr(bench, "units", lambda _appliance: next(turns))
        monkeypatch.setattr(in_use, "times", lambda _visitor: dict.fromkeys(in_use.LOOKED_AT, next(taken)))
        with pytest.raises(SystemExit) as ended:
            bench.main()
        kept: list[dict[str, Any]] = json.loads((tmp_path / "build/bench.json").read_text())["results"]
        return [Result(**one) for one in kept], ended.value.code

    return run


def test_bench_has_every_part():
    assert list(bench.PARTS) == ["pages", "memory", "idle", "snapshots", "backups"]
    assert bench.PARTS["memory"][0] is bench.measure_use


def test_each_bound_stands_once_as_the_design_has_it():
    """What measures judges nothing by a figure of its own, but that nothing at all may happen."""
    found = {name: value for name, value in vars(promises).items() if isinstance(value, int)}
    of_pages = {"WHILE_READING": 2, "WITH_MUCH": 2, "WITH_SNAPSHOTS": 2}
    of_the_box = {"MEMORY": 130, "MEMORY_UNSEEN": 80, "PROCESSOR_IDLE": 1, "WRITTEN_IDLE": 20}
    assert found == {"MIB": 2**20, **of_the_box, **of_pages}
    for module in (bench, in_use, pages):
        calls = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Call)]
        judged = [call.args[3] for call in calls if ast.unparse(call.func) == "result" and len(call.args) > 3]
        assert {ast.unparse(bound) for bound in judged} <= {"0"}, module


def test_bench_of_a_box_in_use_passes_right_below_every_bound(box_in_use):
    results, status = box_in_use()
    assert not status
    assert over(results) == []
    assert len([one for one in results if one.within_budget]) == 4 + len(in_use.LOOKED_AT)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"memory": 130.1}, ["memory on the box in use: web + worker + Redis, PSS"]),
        ({"unseen": 80.1}, ["the same ten minutes after the last page"]),
        (
            {"reading": 2.01},
            [
                f"page {path} while the worker reads 2000 snapshots, against the same at rest"
                for path in ("/", "/disks/", "/folders/", "/snapshots/")
            ],
        ),
        ({"processor": 1.01}, ["processor idle, a box in use, scaled by the emulation factor"]),
        ({"written": 20.1}, ["written to the system disk when idle, a box in use"]),
    ],
    ids=["memory", "unseen", "reading", "processor", "written"],
)
def test_bench_of_a_box_in_use_fails_over_each_bound(box_in_use, changes, names):
    results, status = box_in_use(**changes)
    assert over(results) == names
    assert status


def test_idle_time_under_emulation_is_scaled_and_a_fast_machine_gains_nothing():
    slow = promises.idle("a box", used(), used(processor=3.9), SECONDS, 4)
    assert over(slow) == []
    assert over(promises.idle("a box", used(), used(processor=4.1), SECONDS, 4)) == [slow[2].name]
    assert over(promises.idle("a box", used(), used(processor=1.1), SECONDS, 0.5)) == [slow[2].name]


def test_all_units_count_together():
    each = used(44)[WEB]
    assert over(promises.memory("a box", dict.fromkeys(bench.UNITS, each))) == [
        "memory on a box: web + worker + Redis, PSS"
    ]


@pytest.mark.parametrize(("slow", "late"), [(1.99, False), (2.01, True)])
def test_pages_of_a_large_box_take_at_most_twice_as_long(slow, late):
    assert {"/", "/folders/"} <= set(pages.PAGES)
    for page in pages.PAGES:
        found = over(promises.with_much(page, (20, 1.0), (20, slow)))
        assert found == [f"time of {page}: 10 pools and 1,000 folders against 1 and 10"] * late
    assert bool(over([promises.with_snapshots("of all", 1.0, slow)])) == late


def test_one_more_query_on_a_large_box_is_over():
    assert over(promises.with_much("/", (20, 1.0), (21, 1.0))) == [
        "queries of /: 10 pools and 1,000 folders more than 1 and 10"
    ]
