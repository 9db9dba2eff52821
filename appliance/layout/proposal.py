"""A layout that is proposed, and what it is made of."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from appliance.layout.choices import LayoutChoice
from appliance.message import Message

COUNTS = {1: Message("one disk"), 2: Message("two disks"), 3: Message("three disks")}


class Candidate(msgspec.Struct, frozen=True):
    """A disk as the advisor sees it. ``trouble``: what it reports about itself, such as
    “reports 12 unreadable sectors”."""

    size: int
    label: str = Message("A disk")
    physical_sector: int = 4096
    rotational: bool = True
    shingled: bool = False
    trouble: str = ""


class Growth(msgspec.Struct, frozen=True):
    """One way to grow a pool: what to do, the bytes for files that it adds, and what to know about it."""

    how: str
    gain: int
    note: str = ""


class Proposal(msgspec.Struct, frozen=True):
    """One layout of the disks with its advantages and disadvantages. Sizes in bytes, speeds as ratios."""

    choice: LayoutChoice
    title: str
    groups: tuple[tuple[int, ...], ...]  # positions among the candidates
    spares: tuple[int, ...]
    raw: int
    usable: int  # as zfs list will show
    large_files: int  # what fits in records of 1 MiB
    parity_cost: int
    waste: int  # lost because disks differ in size, and to spares
    survives: int
    second_loss: Fraction
    third_loss: Fraction
    random_read: int
    random_write: int
    sequential_read: int
    sequential_write: int
    slice: int = 0  # bytes of each equal partition; 0: whole disks
    rest: int = 0  # bytes for files in the second pool, which is unprotected unless it is mirrored
    growth: tuple[Growth, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str = ""  # why it is recommended; empty for the others

    @property
    def percent(self) -> int:
        """The share of the disks that is for files."""
        return self.usable * 100 // self.raw if self.raw else 0

    def usable_surviving(self, survives: int) -> int:
        """Bytes for files in pools that survive this many failures wherever they are."""
        second = self.rest if self.choice.mirrored and survives <= 1 else 0
        return self.usable + second if self.survives >= survives else 0
