"""The three layouts to choose from first, and the words for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.layout.advice import propose_layouts
from appliance.layout.choices import LayoutChoice, only_layout
from appliance.layout.descriptions import describe_failures, explain_layout
from appliance.layout.proposal import Candidate, Proposal
from appliance.layout.shortlist import Suggestion, shorten_proposals

TB = 10**12
SIZES = st.lists(st.integers(min_value=TB // 10, max_value=20 * TB), min_size=1, max_size=24)


def suggest(*sizes: int) -> tuple[Suggestion, ...]:
    return shorten_proposals(propose_layouts([Candidate(size) for size in sizes]))


def by_goal(found: tuple[Suggestion, ...]) -> dict[str, Proposal]:
    return {goal: suggestion.proposal for suggestion in found for goal in suggestion.goals}


@given(SIZES)
def test_each_goal_is_met_once_and_each_layout_suggested_once(sizes):
    found = suggest(*sizes)
    goals = [goal for suggestion in found for goal in suggestion.goals]
    assert goals == [] if len(sizes) == 1 else sorted(goals) == ["balanced", "most room", "safest"]
    assert len({suggestion.proposal.choice for suggestion in found}) == len(found) <= 3


@given(SIZES)
def test_the_safest_is_never_less_certain_than_the_others(sizes):
    found = by_goal(suggest(*sizes))
    for other in found.values():
        safest = found["safest"]
        assert safest.survives >= other.survives
        if safest.survives == other.survives:
            assert (safest.second_loss, safest.third_loss) <= (other.second_loss, other.third_loss)


@given(SIZES)
def test_most_room_never_holds_less_than_the_others(sizes):
    found = by_goal(suggest(*sizes))
    assert all(found["most room"].usable >= other.usable for other in found.values())


@given(SIZES)
def test_whatever_serves_a_goal_survives_a_failed_disk_and_balanced_is_the_recommendation(sizes):
    found = by_goal(suggest(*sizes))
    assert all(proposal.survives >= 1 for proposal in found.values())
    assert all(proposal.choice.layout != "stripe" and not proposal.choice.equal for proposal in found.values())
    if found:
        assert found["balanced"].reason


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, [("No protection", "stripe-1")]),
        (2, [("Balanced, safest and most room", "mirror-1")]),
        (3, [("Balanced and most room", "raidz1-1"), ("Safest", "mirror-1")]),
        (4, [("Balanced", "mirror-2"), ("Safest", "raidz2-1"), ("Most room", "raidz1-1")]),
        (5, [("Balanced and safest", "raidz2-1"), ("Most room", "raidz1-1")]),
        (6, [("Balanced", "raidz2-1"), ("Safest", "raidz3-1"), ("Most room", "raidz1-1")]),
    ],
)
def test_the_suggestions_for_equal_disks(count, expected):
    found = suggest(*[4 * TB] * count)
    assert [(suggestion.title, suggestion.proposal.choice.value) for suggestion in found] == expected


def test_balanced_says_what_speaks_for_it_where_the_safest_holds_more():
    found = {suggestion.title: suggestion for suggestion in suggest(*[4 * TB] * 12)}
    assert found["Safest"].proposal.usable > found["Balanced"].proposal.usable
    assert [bool(found[title].note) for title in ("Balanced", "Safest", "Most room")] == [True, False, False]
    assert not any(suggestion.note for suggestion in suggest(*[4 * TB] * 4))


def test_without_disks_nothing_is_suggested():
    assert shorten_proposals(()) == ()


@pytest.mark.parametrize(("disks", "layout"), [(0, None), (1, LayoutChoice("stripe")), (2, None), (7, None)])
def test_one_disk_alone_leaves_no_choice(disks, layout):
    assert only_layout(disks) == layout


@pytest.mark.parametrize(
    ("choice", "width", "text"),
    [
        (LayoutChoice("stripe"), 1, "nothing protects the files"),
        (LayoutChoice("stripe"), 3, "files are spread over the disks, and nothing protects them"),
        (LayoutChoice("mirror"), 2, "both disks hold the same files"),
        (LayoutChoice("mirror"), 3, "all three disks hold the same files"),
        (LayoutChoice("mirror", 2), 2, "the disks of each pair hold the same files"),
        (LayoutChoice("mirror", 2), 3, "the disks of each group of three hold the same files"),
        (LayoutChoice("raidz1"), 3, "one disk's worth of space protects the others"),
        (LayoutChoice("raidz2"), 5, "two disks' worth of space protects the others"),
        (LayoutChoice("raidz3", 2), 8, "three disks' worth of space in each group protects the others"),
        (
            LayoutChoice("mirror", 2, 1),
            2,
            "the disks of each pair hold the same files; a spare waits to take the place of a failed disk",
        ),
    ],
)
def test_a_layout_is_explained_in_half_a_sentence(choice, width, text):
    assert explain_layout(choice, width) == text


def test_equal_partitions_say_what_becomes_of_the_rest():
    assert "which nothing protects" in explain_layout(LayoutChoice("raidz1", equal=True), 4)
    assert "which is mirrored" in explain_layout(LayoutChoice("raidz1", equal=True, mirrored=True), 4)


@pytest.mark.parametrize(
    ("survives", "disks", "text"),
    [
        (0, 1, "If this disk fails, everything in the pool is lost."),
        (0, 3, "If any one of the three disks fails, everything in the pool is lost."),
        (1, 2, "Either of the two disks can fail without losing a file."),
        (1, 4, "Any one of the four disks can fail without losing a file."),
        (2, 5, "Any two of the five disks can fail at once without losing a file."),
        (3, 16, "Any three of the 16 disks can fail at once without losing a file."),
    ],
)
def test_what_may_fail_is_said_in_a_sentence(survives, disks, text):
    assert describe_failures(survives, disks) == text
