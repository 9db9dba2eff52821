from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.layout import risk

LAYOUTS = [
    [(1, 0)],
    [(1, 0)] * 2,
    [(1, 0)] * 6,
    [(2, 1)],
    [(3, 2)],
    [(4, 3)],
    [(2, 1)] * 2,
    [(2, 1)] * 3,
    [(2, 1)] * 6,
    [(3, 2)] * 2,
    [(3, 2)] * 4,
    [(3, 1)],
    [(4, 1)],
    [(5, 1)],
    [(8, 1)],
    [(3, 1)] * 2,
    [(4, 1)] * 3,
    [(4, 2)],
    [(6, 2)],
    [(10, 2)],
    [(12, 2)],
    [(6, 2)] * 2,
    [(8, 2)] * 3,
    [(5, 3)],
    [(7, 3)],
    [(11, 3)],
    [(6, 3)] * 2,
    [(12, 3)] * 2,
    [(3, 1), (2, 1)],
    [(6, 2), (1, 0)],
    [(5, 1), (4, 2), (3, 2)],
]


def by_counting(groups: list[risk.Group], failures: int) -> Fraction:
    """Fail every set of so many disks, one after the other, and look whether a group has lost more than its parity."""
    owner = [number for number, (disks, _parity) in enumerate(groups) for _disk in range(disks)]
    sets = list(combinations(range(len(owner)), failures))
    if not sets:
        return Fraction(1)
    lost = sum(
        any(sum(owner[disk] == number for disk in failed) > parity for number, (_disks, parity) in enumerate(groups))
        for failed in sets
    )
    return Fraction(lost, len(sets))


@pytest.mark.parametrize("failures", [1, 2, 3])
@pytest.mark.parametrize("groups", LAYOUTS, ids=str)
def test_the_odds_are_those_of_failing_every_pair_and_every_triple_of_disks(groups, failures):
    assert risk.loss_probability(groups, failures) == by_counting(groups, failures)


groups_of_any_kind = st.lists(
    st.integers(1, 5).flatmap(lambda disks: st.tuples(st.just(disks), st.integers(0, min(disks - 1, 3)))),
    min_size=1,
    max_size=4,
)


@given(groups_of_any_kind, st.integers(1, 5))
def test_the_odds_are_those_of_counting_for_groups_of_any_kind(groups, failures):
    assert risk.loss_probability(groups, failures) == by_counting(groups, failures)


@given(groups_of_any_kind)
def test_what_is_survived_for_certain_has_no_odds_and_one_more_failure_has_some(groups):
    survived = risk.failures_survived(groups)
    assert risk.loss_probability(groups, survived) == 0
    assert risk.loss_probability(groups, survived + 1) > 0


@pytest.mark.parametrize("pairs", range(2, 13))
def test_mirrors_in_pairs_lose_at_the_second_failure_with_one_over_the_others(pairs):
    assert risk.loss_probability([(2, 1)] * pairs, 2) == Fraction(1, 2 * pairs - 1)


@pytest.mark.parametrize(
    ("groups", "percent"),
    # Field notes, "Which layout": four disks, then six.
    [
        ([(4, 1)], 100),
        ([(4, 2)], 0),
        ([(2, 1)] * 2, 33),
        ([(6, 1)], 100),
        ([(6, 2)], 0),
        ([(2, 1)] * 3, 20),
        ([(3, 1)] * 2, 40),
    ],
)
def test_they_are_the_builders_own_figures(groups, percent):
    assert round(risk.loss_probability(groups, 2) * 100) == percent


@pytest.mark.parametrize(
    ("odds", "text"),
    [
        (Fraction(0), "never"),
        (Fraction(1), "always"),
        (Fraction(1, 3), "33 %"),
        (Fraction(1, 1000), "under 1 %"),
        (Fraction(999, 1000), "over 99 %"),
    ],
)
def test_a_small_chance_is_never_called_none(odds, text):
    assert risk.percent_text(odds) == text
