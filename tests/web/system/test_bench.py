"""What ``make bench`` runs inside the appliance, here over a stand-in of ZFS: it measures what it says it does."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from appliance.facts.datasets import Dataset, Snapshot
from appliance.zfs import list_snapshots, status
from tests.benchmarks import backups
from tests.benchmarks.snapshots import ratios
from tests.web import rows
from tests.web.snapshots.test_snapshots import snap


class Zfs(ModuleType):
    """Stands in for libzfs_core, and for what the commands say: datasets with their snapshots."""

    def __init__(self) -> None:
        super().__init__("libzfs_core")
        self.there: dict[str, list[Snapshot]] = {}
        self.changed: dict[str, int] = {}
        self.moment = 1_700_000_000
        self.by_command: list[str] = []

    def moved(self, name: str) -> None:
        self.moment += 1
        self.changed[name] = self.moment

    def lzc_create(self, name: bytes) -> None:
        self.there[name.decode()] = []
        self.moved(name.decode())

    def lzc_snapshot(self, names: list[bytes], props: Any = None) -> None:
        assert len({name.partition(b"@")[0] for name in names}) == len(names), "one of a folder in a call"
        for name in names:
            folder, _at, short = name.decode().partition("@")
            assert short not in {one.short for one in self.there[folder]}
            self.moved(folder)
            self.there[folder].append(snap(folder, self.moment - 1_700_000_000, name=name.decode()))

    def lzc_destroy_snaps(self, names: list[bytes], defer: bool) -> None:
        going: dict[str, set[str]] = {}
        for name in names:
            going.setdefault(name.decode().partition("@")[0], set()).add(name.decode())
        for folder, gone in going.items():
            self.there[folder] = [one for one in self.there[folder] if one.name not in gone]
            self.moved(folder)

    def lzc_snaprange_space(self, first: bytes, last: bytes) -> int:
        return 4096

    def datasets(self) -> tuple[Dataset, ...]:
        return tuple(rows.dataset(name, snapshots_changed=at) for name, at in self.changed.items())

    def read(self, names: Any) -> list[Snapshot]:
        return [one for name in names for one in self.there.get(name, ())]

    def run(self, *argv: str) -> None:
        self.by_command.append(" ".join(argv[:2]))
        if argv[:2] == ("zfs", "snapshot"):
            self.lzc_snapshot([argv[2].encode()])
        elif argv[:2] == ("zfs", "destroy"):
            self.lzc_destroy_snaps([argv[2].encode()], False)


@pytest.fixture
def zfs(monkeypatch):
    stand_in = Zfs()
    monkeypatch.setitem(sys.modules, "libzfs_core", stand_in)
    monkeypatch.setattr(status, "read_datasets", stand_in.datasets)
    monkeypatch.setattr(list_snapshots, "list_snapshots", stand_in.read)
    monkeypatch.setattr("appliance.snapshots.bookmarks.read_bookmarks", lambda names: [])
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return stand_in


def test_the_bench_of_snapshots_reads_one_folder_takes_one_transaction_and_leaves_nothing(zfs, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "tests.benchmarks.snapshots_inside", raising=False)
    from tests.benchmarks import snapshots_inside as inside

    monkeypatch.setattr(inside, "run", zfs.run)
    monkeypatch.setattr(inside, "ROUNDS", 20)
    inside.main()
    assert inside.out["listed"] == 2000
    figures = {name: value for name, value, _unit, _bound in ratios(inside.out)}
    assert figures["policies over 200 folders: transactions"] == 1
    assert figures["inventory after one new snapshot among 2,000: folders read"] == 1
    bounds = {bound for _name, _value, _unit, bound in ratios(inside.out)}
    assert bounds == {1, 2, 0.05, 1.15, None}
    assert zfs.by_command.count("zfs destroy") == inside.SAMPLE
    assert zfs.by_command[-2:] == ["zpool destroy", "rm /var/tmp/larder-bench.img"]
    assert list_snapshots.list_snapshots == zfs.read
    assert not zfs.read(inside.MANY)


def test_the_bench_of_backups_bounds_what_is_promised():
    """Its figures by what the script measures: the promises are bounds, as is nothing that
    emulation alone makes slow."""
    out: dict[str, float] = {}
    for name in ("local", "ssh"):
        out |= {
            f"{name} bytes": 2**26,
            f"{name} bare": 10.0,
            f"{name} stream": 10.4,
            f"{name} step": 14.0,
            f"{name} relay": 1.5,
        }
    for count, lists in (("20", 4), ("200", 10)):
        for kind in ("pool", "computer"):
            out |= {
                f"{count} to the {kind} lists": lists,
                f"{count} to the {kind} others": 7,
                f"{count} to the {kind} forks": 300 + lists,
                f"{count} to the {kind} seconds": 9.0,
            }
    figures = backups.ratios(out, 20)
    bounded = {name: (value, bound) for name, value, _unit, bound in figures if bound is not None}
    assert all(value <= bound for value, bound in bounded.values())
    assert sorted({bound for _value, bound in bounded.values()}) == [0, 0.5, 1 / 0.95]
    worse = out | {
        "ssh stream": 11.0,
        "local stream": 10.6,
        "200 to the pool others": 187,
        "200 to the computer forks": 700,
    }
    over = [name for name, value, _unit, bound in backups.ratios(worse, 20) if bound is not None and value > bound]
    assert len(over) == 4
