"""Possible, sensible and usual layouts of a number of disks, and which disk goes where. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from appliance.layout.geometry import GIB, LEAST_DISKS, MIB

# Wider raidz groups work, but a rebuild reads every disk of a group: zpoolconcepts(7) recommends 3 to 9 disks, and
# more parity or more groups beyond that. These are the widest to be proposed; wider ones can be chosen by hand.
WIDEST = {"raidz1": 8, "raidz2": 12, "raidz3": 16}
WIDEST_MIRROR = 3
COMFORTABLE = 10  # the most disks in one group to be recommended
MOST_SPARES = 2
LEAST_RAIDZ3 = 6  # three parity disks of five leave less than a mirror of two
EQUAL = {"mirror", "raidz1", "raidz2"}  # also proposed on equal partitions
# What equal partitions leave free on every disk: the partition table, alignment (also to 4096-byte sectors), and room
# for a replacement disk that is a little smaller than its label says.
SLACK = 64 * MIB
LEAST_REST = 8 * GIB  # a smaller remainder of a disk is not worth a pool
NOTABLY_UNEQUAL = 0.05

LAYOUT_NAMES = {
    "stripe": "Stripe",
    "mirror": "Mirror",
    "raidz1": "raidz1",
    "raidz2": "raidz2",
    "raidz3": "raidz3",
}


class LayoutChoice(msgspec.Struct, frozen=True):
    """A layout in a number of equal groups, with some disks as spares, of whole disks or of equal partitions.

    ``mirrored``: what the equal partitions leave becomes a pool of mirrors instead of an unprotected one.
    """

    layout: str
    groups: int = 1
    spares: int = 0
    equal: bool = False
    mirrored: bool = False

    @property
    def value(self) -> str:
        """The choice as text in an address: ``raidz2-1``, ``mirror-2-1`` with a spare, ``raidz1-1-0-equal``."""
        if self.equal:
            return f"{self.layout}-{self.groups}-{self.spares}-equal" + ("-mirror" if self.mirrored else "")
        return f"{self.layout}-{self.groups}" + (f"-{self.spares}" if self.spares else "")


def parse_layout(text: str) -> LayoutChoice | None:
    """The choice that a ``value`` stands for; None for any other text."""
    layout, *numbers = text.split("-")
    mirrored = numbers[-2:] == ["equal", "mirror"]
    numbers = numbers[:-1] if mirrored else numbers
    equal = numbers[-1:] == ["equal"]
    numbers = numbers[:-1] if equal else numbers
    if layout not in LEAST_DISKS or not 1 <= len(numbers) <= 2 or not all(map(is_plain_number, numbers)):
        return None
    groups, spares = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
    return LayoutChoice(layout, groups, spares, equal, mirrored) if groups else None


def is_plain_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 2


def deal_disks(sizes: Sequence[int], choice: LayoutChoice) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Positions of the disks in each group, and of the spares.

    The largest disks become the spares, because a spare has to be as large as the disk it stands in for. Several groups
    are dealt in order of size, so that each loses as little as possible to its smallest disk; a single group keeps the
    given order. A remainder stays in the last group, where a check can refuse it.
    """
    by_size = sorted(range(len(sizes)), key=lambda at: sizes[at])
    spares = by_size[len(by_size) - choice.spares :] if choice.spares else []
    rest = [at for at in by_size if at not in spares]
    if choice.groups == 1:
        rest.sort()
    width = max(len(rest) // choice.groups, 1)
    cut = [tuple(rest[at * width : (at + 1) * width]) for at in range(choice.groups - 1)]
    return (*cut, tuple(rest[(choice.groups - 1) * width :])), tuple(sorted(spares))


def differ_in_size(sizes: Sequence[int]) -> bool:
    """Whether the disks differ by more than the makers' rounding."""
    return max(sizes) - min(sizes) > NOTABLY_UNEQUAL * max(sizes)


def partition_size(sizes: Sequence[int]) -> int:
    """Bytes of each equal partition: what the smallest disk has room for, in whole MiB."""
    return max(min(sizes) - SLACK, 0) // MIB * MIB


def rest_size(size: int, slice_: int) -> int:
    """Bytes that a disk has left besides its equal partition, in whole MiB; 0 where that is too little to use."""
    left = (size - slice_ - SLACK) // MIB * MIB
    return left if left >= LEAST_REST else 0


def rest_sizes(sizes: Sequence[int]) -> list[int]:
    """Bytes that each disk has left besides the largest partition that all of them have room for."""
    slice_ = partition_size(sizes)
    return [rest_size(size, slice_) for size in sizes]


def rest_mirrors(rests: Sequence[int]) -> list[list[int]]:
    """Positions of the remainders grouped to mirrors of two by size, the last of three for an odd number.
    Empty: too few."""
    by_size = sorted((at for at, left in enumerate(rests) if left), key=lambda at: rests[at])
    pairs = [by_size[at : at + 2] for at in range(0, len(by_size) - 1, 2)]
    return [*pairs[:-1], [*pairs[-1], by_size[-1]]] if pairs and len(by_size) % 2 else pairs


def is_possible(choice: LayoutChoice, disks: int) -> bool:
    """Whether this number of disks can be laid out like that at all."""
    members = disks - choice.spares
    return (
        members > 0
        and members % choice.groups == 0
        and members // choice.groups >= LEAST_DISKS[choice.layout]
        and (choice.layout != "stripe" or choice.groups == 1)
    )


def possible_layouts(disks: int) -> Iterator[LayoutChoice]:
    """Every layout of whole disks that works: what a user can choose by hand."""
    for layout in LEAST_DISKS:
        for spares in range(MOST_SPARES + 1):
            if layout == "stripe" and spares:
                continue
            for groups in range(1, disks + 1):
                if is_possible(choice := LayoutChoice(layout, groups, spares), disks):
                    yield choice


def only_layout(disks: int) -> LayoutChoice | None:
    """The layout of a number of disks that allows no other; None where there is a choice."""
    found = list(islice(possible_layouts(disks), 2))
    return found[0] if len(found) == 1 else None


def sensible_layouts(sizes: Sequence[int]) -> list[LayoutChoice]:
    """The layouts worth comparing for these disks; the recommended one is among them."""
    disks = len(sizes)
    layouts = [choice for choice in possible_layouts(disks) if is_worth_proposing(choice, disks)]
    if disks > 1 and differ_in_size(sizes) and any(rest_sizes(sizes)):
        layouts += [
            LayoutChoice(choice.layout, 1, 0, equal=True)
            for choice in layouts
            if choice.groups == 1 and not choice.spares and choice.layout in EQUAL
        ]
        if rest_mirrors(rest_sizes(sizes)):
            layouts += [replace(choice, mirrored=True) for choice in layouts if choice.equal]
    best = usual_layout(disks)
    return list(dict.fromkeys([*layouts, best]))


def is_worth_proposing(choice: LayoutChoice, disks: int) -> bool:
    """Whether a possible layout is proposed to the user."""
    width = (disks - choice.spares) // choice.groups
    if choice.layout == "stripe":
        return True
    # One group and a spare hold no more than one group with one more parity disk, which needs no rebuild first.
    if choice.spares > 1 or (choice.spares and choice.groups == 1):
        return False
    if choice.layout == "mirror":
        # With a spare for an odd number of disks; more than three copies cost more than they protect.
        return width <= WIDEST_MIRROR and (not choice.spares or (width == 2 and disks % 2 == 1))
    return width <= WIDEST[choice.layout] and (choice.layout != "raidz3" or width >= LEAST_RAIDZ3)


def usual_layout(disks: int) -> LayoutChoice:
    """The usual layout at home: survives one failure with two to four disks, two with five or more.

    Groups have at most ten disks; disks that do not divide evenly become spares.
    """
    if disks <= 3:
        return LayoutChoice(("stripe", "mirror", "raidz1")[max(disks, 1) - 1])
    if disks == 4:
        return LayoutChoice("mirror", 2)
    if disks == COMFORTABLE + 1:
        return LayoutChoice("raidz3")
    groups = -(-disks // COMFORTABLE) if disks > COMFORTABLE else 1
    groups = min(range(groups, groups + 2), key=lambda count: (disks % count, count)) if groups > 1 else 1
    return LayoutChoice("raidz2", groups, disks % groups)
