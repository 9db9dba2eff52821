"""Settings, conditions and versions that the cases of a table share."""

from __future__ import annotations

import pytest

from appliance.benchmarks import environment, validity
from appliance.benchmarks.conditions import run_conditions, shared_conditions, versions_since
from appliance.benchmarks.matrix import Sweep
from appliance.benchmarks.results import span_text
from appliance.benchmarks.validity import Circumstances
from appliance.layout.geometry import GIB, MIB
from tests.unit.benchmarks.test_benchmarks import case, sweep


def of(found: Sweep) -> dict[str, str]:
    return shared_conditions(list(found.build_cases()))


def test_shared_settings_are_listed_without_those_that_differ():
    found = of(sweep(ashifts=[9, 12], compressible=33, compressions=["lz4"], size=2 * GIB))
    assert found["Layout"] == "raidz1 of 5 disks"
    assert found["Compression"] == "lz4"
    assert found["Data per run"] == "2 GiB"
    assert found["What is written"] == "generated, 33 % smaller once compressed"
    assert found["Runs"] == "3 of each case"
    assert not {"Sectors", "Log device", "A timed run lasts", "At the same time", "Priority"} & found.keys()


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"limited": True}, "Memory", "limited to 512 MiB"),
        ({"aside": True}, "Memory", "kept out of reads"),
        ({}, "Memory", "as in daily use"),
        ({"gentle": True}, "Priority", "everything else went first"),
        ({"writers": 4}, "At the same time", "4 writers"),
        (
            {"workloads": ["dd-write"], "zeros": True},
            "What is written",
            "zeros by dd, which say nothing about real data",
        ),
        ({"workloads": ["sync-write"], "seconds": 90}, "A timed run lasts", "2 min"),
        ({"warmups": 2}, "Runs", "3 of each case, after 2 that do not count"),
    ],
)
def test_conditions_of_a_run_are_listed(changes, name, said):
    assert of(sweep(**changes))[name] == said


def test_conditions_that_do_not_apply_are_left_out():
    assert shared_conditions([]) == {}
    network = Sweep(where="network", workloads=("net-send",), peer="10.0.0.2", seconds=10)
    assert of(network) == {
        "Other computer": "10.0.0.2",
        "Runs": "3 of each case",
        "A timed run lasts": "10 s",
    }
    single = run_conditions(list(sweep(where="disk", workloads=["disk-start"], size=256 * MIB).build_cases()))
    assert single == {"Runs": "3 of each case", "Data per run": "256 MiB"}


def test_zeros_are_marked_at_each_figure():
    zeros = case(workload="dd-write", zeros=True)
    assert "dd wrote zeros." in list(validity.run_remarks(zeros, Circumstances()))
    assert list(validity.run_remarks(case(workload="dd-write"), Circumstances())) == []


def test_versions_include_the_hardware(monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_text(
        "processor\t: 0\nmodel name\t: AMD Athlon(tm) II Neo N36L  Dual-Core\nflags\t: fpu\n"
    )
    (tmp_path / "meminfo").write_text("MemTotal:        4046848 kB\nMemFree: 1 kB\n")
    monkeypatch.setattr(environment, "PROCESSOR", tmp_path / "cpuinfo")
    monkeypatch.setattr(environment, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = environment.read_versions()
    assert found["Processor"] == "AMD Athlon(tm) II Neo N36L Dual-Core, 2 cores"
    assert found["Memory of the box"].startswith("3.86 GiB")
    (tmp_path / "meminfo").write_text("")
    assert "Memory of the box" not in environment.read_versions()


@pytest.mark.parametrize(
    ("least", "most", "unit", "said"),
    [
        (81 * MIB, 84.9 * MIB, "B/s", "84.9 to 89 MB/s"),
        (900 * MIB, 2 * GIB, "B/s", "944 MB/s to 2.15 GB/s"),
        (147, 152, "per second", "147 to 152 a second"),
        (147, 147, "per second", "147 a second"),
        (7, 8.5, "seconds", "7.0 to 8.5 s"),
        (3600 * 2, 3600 * 3 + 600, "seconds", "2 h to 3 h 10 min"),
    ],
)
def test_range_has_a_shared_unit_once(least, most, unit, said):
    assert span_text(least, most, unit) == said


def test_version_changed_during_a_sweep_is_listed_with_its_case():
    first = {"Linux": "6.12", "ZFS": "2.3.9"}
    assert versions_since({}, first, 1) == first
    assert versions_since(first, first, 2) == first
    second = versions_since(first, {"Linux": "6.12", "ZFS": "2.4.0"}, 5)
    assert second == {**first, "ZFS since case 5": "2.4.0"}
    assert versions_since(second, {"Linux": "6.12", "ZFS": "2.4.0"}, 6) == second
    assert versions_since(second, first, 7) == {**second, "ZFS since case 7": "2.3.9"}
