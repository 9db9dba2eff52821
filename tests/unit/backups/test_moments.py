"""As of which moments a copied tree can come back, and which snapshot of each folder belongs to one."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from appliance.backups.moments import MOST, Kept, choose_snapshots, list_moments

TOP, TRIP, MORE = "photos", "photos/trip", "photos/more"
Row = tuple[str, str, int, int]  # dataset, short, transaction group, seconds since 1970


def kept(*rows: Row) -> list[Kept]:
    return [Kept(dataset, short, number, txg, created) for number, (dataset, short, txg, created) in enumerate(rows)]


def shorts(found: list[Kept], top: str = TOP) -> list[str]:
    return [one.short for one in list_moments(found, top)]


def brought(found: list[Kept], short: str) -> dict[str, str]:
    return {one.dataset: one.short for one in choose_snapshots(found, short, TOP)}


def test_moment_in_which_only_a_folder_below_changed_can_be_chosen_and_is_the_newest():
    found = kept((TOP, "old", 10, 100), (TRIP, "old", 10, 100), (TRIP, "new", 20, 200))
    assert shorts(found) == ["new", "old"]
    assert brought(found, "new") == {TOP: "old", TRIP: "new"}
    assert brought(found, "old") == {TOP: "old", TRIP: "old"}


def test_folder_of_which_only_newer_copies_are_kept_comes_back_as_of_them():
    found = kept((TOP, "old", 10, 100), (TRIP, "new", 20, 200))
    assert brought(found, shorts(found)[0]) == {TOP: "old", TRIP: "new"}
    assert brought(found, "old") == {TOP: "old"}


def test_moment_of_which_the_top_has_no_copy_yet_is_none():
    found = kept((TRIP, "before", 5, 50), (TOP, "old", 10, 100), (MORE, "new", 20, 200))
    assert shorts(found) == ["new", "old"]
    assert brought(found, "old") == {TRIP: "before", TOP: "old"}
    assert shorts(kept((TRIP, "before", 5, 50))) == [] == shorts([])


def test_folders_come_parents_first_and_none_without_its_parent():
    found = kept(
        (f"{TRIP}/day", "old", 10, 100), (f"{MORE}/x", "old", 10, 100), (TRIP, "old", 10, 100), (TOP, "old", 10, 100)
    )
    assert [one.dataset for one in choose_snapshots(found, "old", TOP)] == [TOP, TRIP, f"{TRIP}/day"]


def test_moment_that_is_gone_brings_nothing():
    assert brought(kept((TOP, "old", 10, 100)), "other") == {}


def test_snapshots_of_one_run_whose_dates_differ_by_a_second_are_one_moment():
    found = kept((TOP, "run", 10, 100), (TRIP, "run", 11, 101))
    assert [(one.short, one.created) for one in list_moments(found, TOP)] == [("run", 101)]
    assert brought(found, "run") == {TOP: "run", TRIP: "run"}


def test_folder_of_an_earlier_run_that_arrived_after_the_next_one_belongs_to_its_own():
    """A run was cut off in a folder; the next one goes on there once it has copied the others."""
    found = kept((TOP, "cut", 10, 100), (TOP, "next", 20, 200), (MORE, "next", 22, 200), (TRIP, "cut", 25, 100))
    assert shorts(found) == ["next", "cut"]
    assert brought(found, "next") == {TOP: "next", MORE: "next", TRIP: "cut"}
    assert brought(found, "cut") == {TOP: "cut", TRIP: "cut"}


@pytest.mark.parametrize("wrong", [0, 1, 10**9])
def test_run_while_the_clock_was_wrong_takes_its_place_by_arrival(wrong):
    found = kept(
        (TOP, "first", 10, 1000),
        (TRIP, "first", 10, 1000),
        (TOP, "wrong", 20, wrong),
        (TRIP, "last", 30, 3000),
        (TOP, "last", 30, 3000),
    )
    assert shorts(found) == ["last", "wrong", "first"]
    assert brought(found, "wrong") == {TOP: "wrong", TRIP: "first"}
    assert brought(found, "last") == {TOP: "last", TRIP: "last"}


def test_newest_moment_brings_the_newest_also_where_a_run_was_cut_off_and_a_clock_was_wrong():
    found = kept((TOP, "cut", 10, 900), (TOP, "next", 20, 100), (TRIP, "cut", 30, 900))
    assert brought(found, shorts(found)[0]) == {TOP: "next", TRIP: "cut"}


def test_only_the_newest_of_many_moments_are_listed():
    found = kept(*((TOP, f"run {number}", number, number) for number in range(1, MOST + 50)))
    assert shorts(found) == [f"run {number}" for number in range(MOST + 49, 49, -1)]


def some_tree(chance: random.Random) -> Iterable[Row]:
    """What runs have left of three folders, some of them cut off and gone on with, a part
    of which is no longer kept."""
    txg, partly = 0, dict[str, int]()
    for run in range(chance.randint(1, 12)):
        for dataset in (TOP, TRIP, MORE):
            for number in (partly.pop(dataset, None), run if chance.random() < 0.5 else None):
                if number is None:
                    continue
                if chance.random() < 0.2:
                    partly[dataset] = number
                    break
                txg += 1
                yield dataset, f"run {number}", txg, 100 * number + 100


@pytest.mark.parametrize("seed", range(300))
def test_newest_moment_brings_the_newest_of_everything_and_each_never_goes_back(seed):
    chance = random.Random(seed)  # no secret
    found = [one for one in kept(*some_tree(chance)) if chance.random() < 0.8]
    moments = shorts(found)
    newest = {one.dataset: one.short for one in sorted(found, key=lambda one: one.txg)}
    if TOP not in newest:
        assert not moments
        return
    assert brought(found, moments[0]) == newest
    number = {short: int(short.removeprefix("run ")) for short in (one.short for one in found)}
    for short in moments:
        wanted = {
            dataset: max(
                (one for one in found if one.dataset == dataset and number[one.short] <= number[short]),
                key=lambda one: one.txg,
            )
            for dataset in newest
            if any(one.dataset == dataset and number[one.short] <= number[short] for one in found)
        }
        assert {one.dataset: one for one in choose_snapshots(found, short, TOP)} == wanted
