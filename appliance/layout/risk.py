"""What failed disks do to a pool: how many are survived for certain, and how likely the next ones lose data. Pure, exact.

A group is ``(disks, parity)``; the pool is lost when any group has more failed disks than parity. "At random" means
that every set of that many of the pool's disks is equally likely, all of them failed before any is rebuilt, so a
spare changes nothing here. (Field notes, “Which layout”: mirrors of n/2 pairs lose at the second failure with 1/(n−1).)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

Group = tuple[int, int]


def failures_survived(groups: Sequence[Group]) -> int:
    """How many failed disks are survived wherever they are: the weakest group decides."""
    return min((parity for _disks, parity in groups), default=0)


def count_survived(groups: Sequence[Group], failures: int) -> int:
    """Of all sets of so many failed disks, how many lose nothing: the coefficient of a product of polynomials."""
    ways = [1] + [0] * failures
    for disks, parity in groups:
        ways = [
            sum(ways[total - here] * comb(disks, here) for here in range(min(parity, disks, total) + 1))
            for total in range(failures + 1)
        ]
    return ways[failures]


def loss_probability(groups: Sequence[Group], failures: int) -> Fraction:
    """The probability that so many disks, failed at random, lose data. 1 where there are not so many disks."""
    every = comb(sum(disks for disks, _parity in groups), failures)
    return 1 - Fraction(count_survived(groups, failures), every) if every else Fraction(1)


def percent_text(odds: Fraction) -> str:
    """A probability as people say it: never, always, or a percentage that is neither 0 nor 100."""
    if odds == 0:
        return "never"
    if odds == 1:
        return "always"
    whole = round(odds * 100)
    return "under 1 %" if whole < 1 else "over 99 %" if whole > 99 else f"{whole} %"
