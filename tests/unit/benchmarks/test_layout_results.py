"""Earlier results with the same disks are shown for a layout, and others are not."""

from __future__ import annotations

import pytest

from appliance.benchmarks import layout_results
from tests.unit.benchmarks.test_benchmarks import case, measured
from tests.unit.made import path_of

THREE = tuple(map(path_of, (1, 2, 3)))
MIB = 2**20


def of(*found, layout: str = "raidz1", groups: int = 1, disks: tuple[str, ...] = THREE) -> str:
    return layout_results.results_text(layout_results.find_layout_results(found, layout, groups, frozenset(disks)))


def test_newest_result_of_each_workload_is_shown_in_order():
    rebuilt = case(disks=THREE, workload="resilver", fill=25)
    found = [
        measured(1, rebuilt, 2400.0),
        measured(2, case(disks=THREE), 132.0 * MIB),
        measured(3, case(disks=THREE), 99.0 * MIB),
    ]
    assert "writes large files with 138 MB/s" in of(*found)
    assert "99" not in of(*found)


@pytest.mark.parametrize(
    "changes",
    [
        {"ashift": 9},
        {"sync": "always"},
        {"partition": 2**30},
        {"log": path_of(6)},
        {"recordsize": 4096},
        {"volblocksize": 8192},
        {"gentle": True},
        {"sample": "tank/photos"},
        {"layout": "mirror"},
        {"disks": (*THREE, path_of(4))},
    ],
    ids=str,
)
def test_results_with_unusual_settings_are_left_out(changes):
    assert of(measured(1, case(**{"disks": THREE, **changes}), 132.0 * MIB)) == ""


def test_reads_without_read_ahead_are_left_out():
    assert of(measured(1, case(disks=THREE, workload="seq-read", aside=True), 132.0 * MIB)) == ""
    assert of(measured(1, case(disks=THREE, workload="seq-read", limited=True), 132.0 * MIB))
    assert of(measured(1, case(disks=THREE, aside=True), 132.0 * MIB))


def test_pairs_of_mirrors_differ_from_one_wide_mirror():
    four = tuple(map(path_of, (1, 2, 3, 4)))
    found = measured(1, case(disks=four, layout="mirror"), 132.0 * MIB)
    assert of(found, layout="mirror", groups=2, disks=four)
    assert not of(found, layout="mirror", groups=1, disks=four)
