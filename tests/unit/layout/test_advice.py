from __future__ import annotations

import re
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.disks.smr_models import is_shingled
from appliance.formatting import size_text
from appliance.layout import choices
from appliance.layout.advice import choose_data_disks, judge_layout, propose_layouts
from appliance.layout.choices import (
    SLACK,
    LayoutChoice,
    deal_disks,
    is_possible,
    parse_layout,
    partition_size,
    possible_layouts,
    rest_mirrors,
    rest_sizes,
    usual_layout,
)
from appliance.layout.geometry import GIB, LEAST_DISKS, MIB, expanded_bytes, file_bytes, usable_bytes
from appliance.layout.proposal import Candidate, Proposal

TB = 10**12


def disks(*sizes: float) -> list[Candidate]:
    return [Candidate(round(size * TB), f"bay {at}") for at, size in enumerate(sizes, 1)]


def one(found: tuple[Proposal, ...], value: str) -> Proposal:
    return next(proposal for proposal in found if proposal.choice.value == value)


# --- which layouts ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", range(1, 25))
def test_one_layout_is_recommended_first_and_it_says_why(count):
    found = propose_layouts(disks(*[4] * count))
    assert [bool(proposal.reason) for proposal in found] == [True] + [False] * (len(found) - 1)
    assert found[0].choice == usual_layout(count)
    assert len({proposal.choice for proposal in found}) == len(found)


@pytest.mark.parametrize("count", range(2, 25))
def test_the_recommended_layout_survives_a_failure_and_two_from_five_disks_on(count):
    best = propose_layouts(disks(*[4] * count))[0]
    assert best.survives >= (1 if count < 5 else 2)
    assert max(len(group) for group in best.groups) <= 11


@given(st.lists(st.integers(min_value=TB // 10, max_value=20 * TB), min_size=1, max_size=24))
def test_every_proposal_uses_each_disk_once_and_holds_less_than_the_disks(sizes):
    for proposal in propose_layouts([Candidate(size) for size in sizes]):
        used = sorted([at for group in proposal.groups for at in group] + list(proposal.spares))
        assert used == list(range(len(sizes)))
        assert len({len(group) for group in proposal.groups}) == 1
        assert is_possible(replace_equal(proposal.choice), len(sizes))
        assert 0 < proposal.usable + proposal.rest < sum(sizes)
        assert proposal.raw == sum(sizes)
        assert proposal.usable + proposal.parity_cost + proposal.waste < proposal.raw
        assert proposal.waste >= 0
        assert proposal.parity_cost >= 0


def replace_equal(choice: LayoutChoice) -> LayoutChoice:
    return replace(choice, equal=False)


def test_the_layouts_of_four_disks_are_those_that_people_compare():
    assert {proposal.title for proposal in propose_layouts(disks(2, 2, 2, 2))} == {
        "2 × Mirror of 2",
        "raidz1 of 4",
        "raidz2 of 4",
        "Stripe of 4",
    }


@pytest.mark.parametrize(
    ("count", "title"),
    [
        (5, "2 × Mirror of 2, 1 spare"),
        (6, "2 × Mirror of 3"),
        (6, "2 × raidz1 of 3"),
        (9, "3 × raidz1 of 3"),
        (12, "2 × raidz2 of 6"),
        (13, "2 × raidz2 of 6, 1 spare"),
        (24, "3 × raidz2 of 8"),
        (8, "raidz3 of 8"),
    ],
)
def test_several_groups_and_spares_are_among_the_proposals(count, title):
    assert title in {proposal.title for proposal in propose_layouts(disks(*[2] * count))}


def test_without_disks_there_is_no_advice():
    assert propose_layouts([]) == ()


@pytest.mark.parametrize("count", range(1, 17))
def test_whatever_can_be_chosen_by_hand_can_be_judged(count):
    found = list(possible_layouts(count))
    assert usual_layout(count) in found
    for choice in found:
        assert judge_layout(disks(*[2] * count), choice).usable > 0


@pytest.mark.parametrize(
    "choice",
    [
        *possible_layouts(12),
        LayoutChoice("raidz1", 1, 0, equal=True),
        LayoutChoice("mirror", 2, 1, equal=True),
        LayoutChoice("mirror", 1, 0, equal=True, mirrored=True),
    ],
)
def test_a_choice_comes_back_from_its_address(choice):
    assert parse_layout(choice.value) == choice


@pytest.mark.parametrize(
    "text",
    [
        "",
        "raidz2",
        "raidz2-",
        "raidz2-0",
        "raidz4-1",
        "raidz2--1",
        "raidz2-1-x",
        "raidz2-1-1-1",
        "raidz2-²",
        "raidz2-٢",
        "raidz2-999",
        "equal",
        "mirror-equal",
        "raidz2-1-equal-0",
        "raidz2-1;reboot",
    ],
)
def test_what_is_no_choice_is_none(text):
    assert parse_layout(text) is None


# --- which disk where ---------------------------------------------------------------------------------------
def test_pairs_are_made_of_disks_of_one_size_and_the_largest_is_the_spare():
    sizes = [4 * TB, 2 * TB, 3 * TB, 2 * TB, 3 * TB]
    assert deal_disks(sizes, LayoutChoice("mirror", 2, 1)) == (((1, 3), (2, 4)), (0,))
    assert judge_layout([Candidate(size) for size in sizes], LayoutChoice("mirror", 2, 1)).usable == usable_bytes(
        "mirror", [[2 * TB] * 2, [3 * TB] * 2]
    )


def test_a_single_group_keeps_the_order_of_the_bays():
    assert deal_disks([3 * TB, 2 * TB, 1 * TB], LayoutChoice("raidz1")) == (((0, 1, 2),), ())


def test_what_does_not_divide_stays_in_the_last_group():
    assert [len(group) for group in deal_disks([TB] * 5, LayoutChoice("mirror", 2))[0]] == [2, 3]


# --- figures ------------------------------------------------------------------------------------------------
def test_the_figures_of_six_disks_are_the_builders_own():
    found = propose_layouts(disks(*[2] * 6))
    figures = {
        value: (one(found, value).random_write, one(found, value).second_loss)
        for value in ("raidz1-1", "raidz2-1", "mirror-3", "raidz1-2")
    }
    assert figures == {
        "raidz1-1": (1, Fraction(1)),
        "raidz2-1": (1, Fraction(0)),
        "mirror-3": (3, Fraction(1, 5)),
        "raidz1-2": (2, Fraction(2, 5)),
    }


def test_speed_is_told_for_reading_and_writing():
    found = propose_layouts(disks(*[2] * 6))
    told = {
        value: (p.random_read, p.random_write, p.sequential_read, p.sequential_write)
        for value in ("stripe-1", "mirror-2", "raidz2-1")
        for p in [one(found, value)]
    }
    assert told == {"stripe-1": (6, 6, 6, 6), "mirror-2": (6, 2, 6, 2), "raidz2-1": (1, 1, 4, 4)}


def test_parity_costs_what_it_costs():
    found = propose_layouts(disks(*[2] * 6))
    assert one(found, "raidz2-1").parity_cost == 4 * TB
    assert one(found, "mirror-3").parity_cost == 6 * TB
    assert one(found, "stripe-1").parity_cost == 0


def test_smaller_records_lose_more_to_padding_and_larger_ones_less():
    held = [file_bytes("raidz2", [[2 * TB] * 5], 12, size) for size in (8 * 1024, 128 * 1024, MIB)]
    assert held == sorted(held)
    assert held[1] == pytest.approx(usable_bytes("raidz2", [[2 * TB] * 5]), rel=0.003)


@pytest.mark.parametrize("layout", sorted(LEAST_DISKS))
def test_pointers_cost_a_fraction_that_a_person_would_not_miss(layout):
    sizes = [[4 * TB] * 6]
    assert file_bytes(layout, sizes) == pytest.approx(usable_bytes(layout, sizes), rel=0.003)


# --- unequal disks ------------------------------------------------------------------------------------------
def test_disks_of_unequal_size_are_offered_in_equal_partitions_with_a_second_pool():
    found = propose_layouts(disks(2, 2, 2, 3, 4))
    whole, equal = one(found, "raidz2-1"), one(found, "raidz2-1-0-equal")
    assert equal.usable == pytest.approx(whole.usable, rel=0.002)
    assert whole.rest == 0
    assert equal.rest == pytest.approx(3 * TB * 31 / 32, rel=0.01)
    assert any("protects nothing" in text for text in equal.warnings)
    assert any("would stay unused" in text for text in whole.warnings)
    assert equal.waste < GIB * 2 < whole.waste


def test_disks_of_equal_size_are_not_cut_up():
    assert not any(proposal.choice.equal for proposal in propose_layouts(disks(2, 2, 2.001, 2)))


@given(st.lists(st.integers(min_value=100 * GIB, max_value=20 * TB), min_size=2, max_size=12))
def test_an_equal_partition_and_what_is_left_fit_on_every_disk(sizes):
    for size, rest in zip(sizes, rest_sizes(sizes), strict=True):
        assert partition_size(sizes) + rest + SLACK <= size
        assert partition_size(sizes) % MIB == 0
        assert rest == 0 or rest >= choices.LEAST_REST


def test_what_equal_partitions_leave_is_offered_as_a_mirror_too():
    found = propose_layouts(disks(2, 2, 3, 3))
    striped, mirrored = one(found, "raidz1-1-0-equal"), one(found, "raidz1-1-0-equal-mirror")
    assert mirrored.usable == striped.usable
    assert mirrored.rest == pytest.approx(TB * 31 / 32, rel=0.01)
    assert striped.rest == pytest.approx(2 * TB * 31 / 32, rel=0.01)
    assert mirrored.title == "raidz1 of 4, equal partitions, the rest mirrored"
    assert any("survives one failed disk" in text for text in mirrored.warnings)
    assert not any("protects nothing" in text for text in mirrored.warnings)
    assert (mirrored.usable_surviving(1), striped.usable_surviving(1), mirrored.usable_surviving(2)) == (
        mirrored.usable + mirrored.rest,
        striped.usable,
        0,
    )
    assert parse_layout(mirrored.choice.value) == mirrored.choice
    # One disk alone has nothing to be mirrored with.
    assert not any(proposal.choice.mirrored for proposal in propose_layouts(disks(2, 2, 3)))


@pytest.mark.parametrize(
    ("rests", "groups"),
    [
        ([], []),
        ([5], []),
        ([0, 5], []),
        ([5, 0, 3], [[2, 0]]),
        ([5, 3, 4], [[1, 2, 0]]),
        ([5, 3, 4, 1, 2], [[3, 4], [1, 2, 0]]),
    ],
)
def test_remainders_are_mirrored_by_size(rests, groups):
    assert rest_mirrors(rests) == groups


def mixed(random: Random) -> list[Candidate]:
    return [
        Candidate(round(random.choice((0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 16)) * TB))
        for _disk in range(random.randint(2, 14))
    ]


def assert_weighs(sizes: list[Candidate]) -> None:
    """No other layout that is as safe holds much more, or the sentence says so."""
    best, *others = propose_layouts(sizes)
    assert best.survives >= 1
    for other in others:
        more = other.usable_surviving(best.survives)
        if best.usable < 0.6 * more:
            assert other.choice.equal, (best.title, best.usable, other.title, more)
            assert "Equal partitions would hold" in best.reason
    if "would hold only" in best.reason:
        usual = next(one for one in others if one.choice == usual_layout(len(sizes)))
        assert f"{usual.title} would hold only {size_text(usual.usable)}" in best.reason
        assert usual.usable < best.usable
        assert ("may fail there" in best.reason) == (usual.survives > best.survives)
    else:
        assert best.choice == usual_layout(len(sizes))
    for told in re.findall(r"(\d+) %", best.reason):
        assert int(told) == best.usable * 100 // sum(one.size for one in sizes)


def test_of_two_thousand_mixed_sets_none_is_advised_a_layout_that_wastes_what_another_as_safe_holds():
    random = Random(20261122)
    for _set in range(2000):
        assert_weighs(mixed(random))


@given(st.integers(min_value=0, max_value=2**32))
def test_the_same_holds_for_sets_of_any_seed(seed):
    assert_weighs(mixed(Random(seed)))


def test_six_disks_of_three_sizes_are_advised_as_pairs():
    best = propose_layouts(disks(0.5, 0.5, 2, 2, 3, 3))[0]
    assert best.title == "3 × Mirror of 2"
    assert best.reason == (
        "Any one disk of each group may fail, and it holds 5.34 TB, 48 % of the disks. They differ in size: "
        "raidz2 of 6 would hold only 1.93 TB, but any two disks may fail there."
    )


def test_the_share_of_three_unequal_disks_is_counted_and_not_two_thirds():
    best = propose_layouts(disks(1, 4, 4))[0]
    assert best.percent == 21
    assert "21 % of the space is for files" in best.reason
    assert "two thirds" not in best.reason


# --- growth -------------------------------------------------------------------------------------------------
def test_growing_says_what_each_way_brings():
    raidz = {
        growth.how.split()[0]: growth for growth in one(propose_layouts(disks(2, 2, 2, 2)), "raidz1-1").growth[::2]
    }
    assert raidz["Add"].gain == expanded_bytes("raidz1", [[2 * TB] * 4]) - usable_bytes("raidz1", [[2 * TB] * 4])
    assert raidz["Replace"].gain == usable_bytes("raidz1", [[4 * TB] * 4]) - usable_bytes("raidz1", [[2 * TB] * 4])


def test_a_mirror_can_be_attached_to_for_safety_and_grows_by_pairs_for_space():
    growth = one(propose_layouts(disks(2, 2, 2, 2)), "mirror-2").growth
    assert [step.gain > 0 for step in growth] == [False, True, True]
    assert growth[1].how == "Add another group of 2 disks of 2 TB"
    assert growth[2].how == "Replace the 2 disks of one group by one of 4 TB, one after the other"
    assert growth[2].gain == pytest.approx(2 * TB, rel=0.03)


def test_one_disk_becomes_a_mirror():
    steps = propose_layouts(disks(2))[0].growth
    assert any("becomes a mirror" in step.note for step in steps)


# --- warnings -----------------------------------------------------------------------------------------------
def warnings(found: list[Candidate], value: str) -> str:
    return " ".join(judge_layout(found, parse_layout(value) or LayoutChoice("stripe")).warnings)


def test_plain_disks_in_a_safe_layout_are_warned_of_nothing():
    assert warnings(disks(2, 2, 2, 2), "raidz2-1") == ""


def test_a_pool_without_protection_is_warned_of():
    assert "One failed disk loses everything" in warnings(disks(2), "stripe-1")


@pytest.mark.parametrize(
    ("sizes", "warned"), [([8] * 4, True), ([4] * 4, True), ([2] * 4, False), ([2] * 6, True), ([2] * 5, False)]
)
def test_raidz1_of_large_or_many_disks_is_warned_of(sizes, warned):
    assert ("raidz2 survives" in warnings(disks(*sizes), "raidz1-1")) is warned


def test_a_very_wide_group_is_warned_of():
    assert "rebuilds slowly" in warnings(disks(*[2] * 13), "raidz2-1")
    assert "rebuilds slowly" not in warnings(disks(*[2] * 12), "raidz2-1")


def test_mixed_sectors_and_sectors_larger_than_the_pools_are_warned_of():
    mixed = [replace(disk, physical_sector=512 if at else 4096) for at, disk in enumerate(disks(2, 2))]
    assert "512 and 4096 bytes" in warnings(mixed, "mirror-1")
    large = [replace(disk, physical_sector=16384) for disk in disks(2, 2)]
    assert "Choose a larger sector size" in warnings(large, "mirror-1")


def test_a_sick_disk_and_one_that_shingles_are_warned_of_by_name():
    sick = [
        replace(disk, trouble="reports 12 sectors that cannot be read") if at else disk
        for at, disk in enumerate(disks(2, 2))
    ]
    assert "bay 2 reports 12 sectors that cannot be read. Leave it out" in warnings(sick, "mirror-1")
    slow = [replace(disk, shingled=True) for disk in disks(2, 2)]
    assert "bay 1, bay 2: this model overlaps its tracks" in warnings(slow, "mirror-1")


def test_hard_disks_and_solid_state_disks_together_are_warned_of_and_not_proposed_together():
    mixed = [replace(disk, rotational=bool(at)) for at, disk in enumerate(disks(0.2, 2, 2))]
    assert "Hard disks and solid-state disks are mixed" in warnings(mixed, "raidz1-1")
    assert choose_data_disks(mixed) == [1, 2]
    assert choose_data_disks(mixed[:1]) == [0]


def test_a_sick_disk_is_not_proposed_unless_there_is_no_other():
    sick = [replace(disk, trouble="is failing") if not at else disk for at, disk in enumerate(disks(2, 2, 2))]
    assert choose_data_disks(sick) == [1, 2]
    assert choose_data_disks(sick[:1]) == [0]


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("WDC WD40EFAX-68JH4N0", True),
        ("WDC WD40EFRX-68N32N0", False),
        ("WDC WD20EARS-00MVWB0", False),
        ("ST8000DM004-2CX188", True),
        ("ST8000VN004-2M2101", False),
        ("TOSHIBA HDWD260", True),
        ("TOSHIBA HDWD130", False),
        ("", False),
        ("Samsung SSD 870 EVO 1TB", False),
    ],
)
def test_models_that_shingle_are_known_from_their_makers_lists(model, known):
    assert is_shingled(model) is known
