"""How a run of tests with machines is shared out, and when one of them lasts too long."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests import durations

ROOT = Path(__file__).parents[2]
A, B, C = (f"tests/system/pools/test_create.py::test_{letter}" for letter in "abc")


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_parts_hold_every_file_once(parts):
    seconds = {f"file{number}": float(number) for number in range(1, 12)}
    chosen = [durations.part_of(seconds, part, parts) for part in range(1, parts + 1)]
    assert sorted(file for part in chosen for file in part) == sorted(seconds)


def test_parts_last_about_equally_long():
    seconds = {f"file{number}": float(number) for number in range(1, 41)}
    lengths = [sum(seconds[file] for file in durations.part_of(seconds, part, 4)) for part in range(1, 5)]
    assert max(lengths) - min(lengths) <= max(seconds.values())


def test_test_longer_than_two_minutes_is_named():
    assert len(durations.too_long({A: 130, B: 10}, (A, B))) == 1


def test_test_of_soak_may_last_longer():
    assert durations.too_long({A: 1000, B: 10}, (B,)) == []


def test_run_on_a_slower_computer_is_taken_at_the_pace_of_the_known_one():
    known = {A: 10.0, B: 30.0}
    assert durations.at_known_pace({A: 20.0, B: 60.0, C: 50.0}, known) == {A: 10.0, B: 30.0, C: 25.0}
    assert durations.at_known_pace({C: 50.0}, known) == {C: 50.0}


def test_each_test_of_every_run_has_been_timed():
    """A new one: make test, then python -m tests.durations."""
    known = durations.known_durations()
    assert [
        line for line in durations.every_run() if not any(durations.is_listed(test, (line,)) for test in known)
    ] == []


def test_no_test_of_every_run_takes_more_than_two_minutes_without_a_reason():
    known = durations.known_durations()
    assert durations.too_long(known, durations.every_run()) == []
    assert [test for test in durations.LONG if known[test] <= durations.LONGEST] == []


def test_every_run_fits_into_its_time():
    """Two lanes, as long as each other: 40 minutes for all of make test, of which five are unit, web and gallery."""
    known = durations.known_durations()
    assert sum(took for test, took in known.items() if durations.is_listed(test, durations.every_run())) / 2 < 35 * 60


def test_every_line_of_the_list_is_a_test_that_exists():
    for line in durations.every_run():
        file, _, name = line.partition("::")
        assert (ROOT / file).exists(), line
        text = (ROOT / file).read_text()
        assert not name or f"def {name.partition('[')[0]}(" in text, line
        assert "pytestmark = pytest.mark.soak" not in text, line


def test_a_fifth_of_each_package_is_in_every_run():
    listed, there, run = durations.every_run(), Counter[str](), Counter[str]()
    for path in [*ROOT.glob("tests/system/*/test_*.py"), *ROOT.glob("tests/browser/*/test_*.py")]:
        file = str(path.relative_to(ROOT))
        package = "browser" if "/browser/" in file else file.split("/")[2]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                there[package] += 1
                test = f"{file}::{node.name}"
                run[package] += file in listed or any(line.partition("[")[0] == test for line in listed)
    assert {
        package: f"{run[package]} of {there[package]}" for package in there if run[package] * 5 < there[package]
    } == {}
