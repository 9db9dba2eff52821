"""What deleting snapshots and old copies frees, against pools of which every block is known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.facts.cleanup import Cleanup
from appliance.facts.datasets import Dataset, Property, Snapshot, Span
from appliance.snapshots.cleanup import Known, destroyable_runs, measure_cleanup
from tests.unit.made import dataset

MB = 10**6
HOME = "tank/larder-copies"


def snap(of: str, number: int, **changes: Any) -> Snapshot:
    made = Snapshot(f"{of}@s{number}", number, number, datetime(2026, 11, 20, tzinfo=UTC))
    return replace(made, **changes)


def kept(**sizes: int) -> dict[str, Property]:
    return {key: Property(str(size), "local") for key, size in sizes.items()}


def measure(*datasets: Dataset, copies: Sequence[str] = (), known: Known | None = None) -> Cleanup:
    return measure_cleanup(datasets, copies, known or Known())


def test_snapshots_of_every_folder_count_with_what_they_share():
    # Two snapshots share 300 MB, so each alone holds nothing: only usedbysnapshots says what both hold.
    found = measure(
        dataset("tank", used=1000 * MB),
        dataset("tank/a", used=700 * MB, used_by_snapshots=300 * MB),
        dataset("tank/a/b", used=100 * MB, used_by_snapshots=20 * MB),
    )
    assert found == Cleanup(freed=320 * MB, snapshots=320 * MB)


def test_what_a_protected_snapshot_shares_stays():
    tank, photos = dataset("tank", used=1000 * MB), dataset("tank/a", used=800 * MB, used_by_snapshots=500 * MB)
    every = (snap("tank/a", 1), snap("tank/a", 2), snap("tank/a", 3, holds=1), snap("tank/a", 4, used=30 * MB))
    assert [[one.short for one in run] for run in destroyable_runs(every)] == [["s1", "s2"], ["s4"]]
    spans = (Span("tank/a@s1", "tank/a@s2", 120 * MB), Span("tank/a@s4", "tank/a@s4", 30 * MB))
    found = measure(tank, photos, known=Known(frozenset({"tank/a"}), every, spans))
    assert found == Cleanup(freed=150 * MB, snapshots=150 * MB, staying=1)
    # Without an answer of ZFS only what each holds alone is certain.
    found = measure(tank, photos, known=Known(frozenset({"tank/a"}), every))
    assert (found.freed, found.least) == (30 * MB, True)
    found = measure(tank, photos, known=Known(frozenset({"tank/a"})))
    assert (found.freed, found.least) == (0, True)


def test_a_snapshot_with_a_clone_stays_too():
    tank, photos = dataset("tank", used=1000 * MB), dataset("tank/a", used=800 * MB, used_by_snapshots=500 * MB)
    every = (snap("tank/a", 1, clones=("tank/copy",)),)
    found = measure(tank, photos, known=Known(frozenset({"tank/a"}), every))
    assert found == Cleanup(staying=1)


def test_blocks_of_a_reserved_volume_are_reserved_once_more_while_a_snapshot_has_them():
    # A volume of 100 MB, all of it reserved, with 60 MB written and then a snapshot:
    # ZFS keeps 100 MB free in addition to those 60. Without the snapshot 40 are kept.
    volume = dataset(
        "tank/disk",
        used=160 * MB,
        used_by_data=60 * MB,
        used_by_reservation=100 * MB,
        kind="volume",
        properties=kept(refreservation=100 * MB),
    )
    found = measure(dataset("tank", used=200 * MB), volume)
    assert found == Cleanup(freed=60 * MB, reserved=60 * MB, reserving=("tank/disk",))
    alone = replace(volume, used=100 * MB, used_by_reservation=40 * MB)
    assert measure(dataset("tank", used=200 * MB), alone) == Cleanup()
    # More was written than is reserved: the reservation goes completely.
    full = replace(volume, used=250 * MB, used_by_data=150 * MB)
    assert measure(dataset("tank", used=300 * MB), full).freed == 100 * MB


def test_a_reserved_volume_with_a_protected_snapshot():
    volume = dataset(
        "tank/disk",
        used=160 * MB,
        used_by_data=60 * MB,
        used_by_reservation=100 * MB,
        properties=kept(refreservation=100 * MB),
    )
    newest = (snap("tank/disk", 1), snap("tank/disk", 2, holds=1))
    spans = (Span("tank/disk@s1", "tank/disk@s1", 0),)
    found = measure(dataset("tank", used=200 * MB), volume, known=Known(frozenset({"tank/disk"}), newest, spans))
    assert found == Cleanup(staying=1)  # the blocks stay shared with it
    oldest = (snap("tank/disk", 1, holds=1), snap("tank/disk", 2))
    spans = (Span("tank/disk@s2", "tank/disk@s2", 0),)
    found = measure(dataset("tank", used=200 * MB), volume, known=Known(frozenset({"tank/disk"}), oldest, spans))
    assert found == Cleanup(staying=1, least=True)  # what was written between the two is no longer shared


def test_a_reservation_keeps_what_is_freed_below_it():
    # 300 MB are reserved for a folder that uses 350, of which snapshots hold 120: 230 are left, and 300 stay reserved.
    tank, photos = (
        dataset("tank", used=1000 * MB),
        dataset("tank/a", used=350 * MB, properties=kept(reservation=300 * MB)),
    )
    below = dataset("tank/a/b", used=200 * MB, used_by_snapshots=120 * MB)
    found = measure(tank, photos, below)
    assert (found.freed, found.snapshots, found.withheld) == (50 * MB, 120 * MB, 70 * MB)


def test_an_old_copy_goes_with_its_snapshots_and_all_below():
    tank = dataset("tank", used=1000 * MB)
    home = dataset(HOME, used=500 * MB)
    copy = dataset(f"{HOME}/a", used=400 * MB, used_by_data=250 * MB, used_by_snapshots=50 * MB)
    below = dataset(f"{HOME}/a/b", used=100 * MB, used_by_snapshots=10 * MB)
    other = dataset(f"{HOME}/ab", used=100 * MB, used_by_snapshots=5 * MB)  # no copy below "a"
    found = measure(tank, home, copy, below, other, copies=[copy.name])
    assert found == Cleanup(freed=405 * MB, snapshots=5 * MB, copies=400 * MB)
    # A protected snapshot below keeps the copy; what can go of its snapshots still does.
    every = (snap(below.name, 1, holds=1),)
    known = Known(frozenset({below.name}), every)
    found = measure(tank, home, copy, below, other, copies=[copy.name], known=known)
    assert found == Cleanup(freed=55 * MB, snapshots=55 * MB, staying=1)


# A block is born in one snapshot's time and dies in another's: the dataset as a list of (born, dies, size), where
# snapshot number n has every block with born <= n < dies, and what dies at 9 is in the folder still.
blocks = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 9), st.integers(1, 50)), max_size=20)


@given(blocks, st.sets(st.integers(0, 8)))
def test_destroying_what_can_be_frees_exactly_that_of_any_history(history, held):
    every = tuple(snap("tank/a", at, holds=int(at in held)) for at in range(9))

    def size_of(wanted: set[int]) -> int:
        """What snapshots with these numbers, or the folder, have."""
        return sum(size for born, dies, size in history if dies == 9 or any(born <= at < dies for at in wanted))

    def range_space(first: int, last: int) -> int:
        """``lzc_snaprange_space``: what nothing has but these snapshots."""
        return size_of(set(range(9))) - size_of({at for at in range(9) if not first <= at <= last})

    whole, folder = size_of(set(range(9))), size_of(set())
    ends = [(run[0], run[-1]) for run in destroyable_runs(every)]
    spans = tuple(Span(first.name, last.name, range_space(first.txg, last.txg)) for first, last in ends)
    known = Known(frozenset({"tank/a"}), every, spans) if held else Known()
    photos = dataset("tank/a", used=whole, used_by_snapshots=whole - folder)
    found = measure(dataset("tank", used=whole), photos, known=known)
    assert found.freed == whole - size_of(held)
    assert not found.least
