"""How many failed disks a pool survives for certain, and how likely further ones lose data. Pure and exact.

A group is ``(disks, parity)``; the pool is lost when any group has more failed disks than parity. "At random" means
that every set of that many disks is equally likely and that all of them fail before any is rebuilt, so a spare makes no
difference. Mirrors of n/2 pairs, for example, lose data at the second failure with a probability of 1/(n−1).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

from appliance.message import Message

Group = tuple[int, int]


def failures_survived(groups: Sequence[Group]) -> int:
    """How many failed disks the pool survives wherever they are: the weakest group decides."""
    return min((parity for _disks, parity in groups), default=0)


def count_survived(groups: Sequence[Group], failures: int) -> int:
    """How many sets of this many failed disks lose nothing: a coefficient of a product of polynomials."""
    ways = [1] + [0] * failures
    for disks, parity in groups:
        ways = [
            sum(ways[total - here] * comb(disks, here) for here in range(min(parity, disks, total) + 1))
            for total in range(failures + 1)
        ]
    return ways[failures]


def loss_probability(groups: Sequence[Group], failures: int) -> Fraction:
    """The probability that this many disks, failed at random, lose data. 1 where there are fewer disks."""
    every = comb(sum(disks for disks, _parity in groups), failures)
    return 1 - Fraction(count_survived(groups, failures), every) if every else Fraction(1)


def percent_text(odds: Fraction) -> str:
    """A probability in words: never, always, or a percentage other than 0 and 100."""
    if odds == 0:
        return Message("never")
    if odds == 1:
        return Message("always")
    whole = round(odds * 100)
    if whole < 1:
        return Message("under 1 %")
    return Message("over 99 %") if whole > 99 else f"{whole} %"
