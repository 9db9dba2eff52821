"""A layout as a drawing of its disks, each divided into data, protection and the rest. Numbers for an SVG."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance.layout.choices import rest_size
from appliance.layout.geometry import parity_of
from appliance.layout.proposal import Candidate, Proposal
from web.translation import lazy_text

DISK, GAP, GROUP_GAP, HEIGHT = 14, 3, 9, 44  # in the units of the drawing


class DiagramPart(msgspec.Struct, frozen=True):
    """A piece of a disk: where it is drawn and what it is for (data, parity, spare, rest, idle)."""

    x: int
    y: float
    height: float
    use: str


class LayoutDiagram(msgspec.Struct, frozen=True):
    """The drawing, and the same as text."""

    width: int
    parts: tuple[DiagramPart, ...]
    words: str

    height = HEIGHT
    disk = DISK


def disk_uses(
    proposal: Proposal, disks: list[Candidate], group: tuple[int, ...], at: int
) -> Iterator[tuple[str, float]]:
    """The uses of one disk of a group and their bytes, from the bottom up."""
    size, layout = disks[at].size, proposal.choice.layout
    counted = proposal.slice or (size if layout == "stripe" else min(disks[other].size for other in group))
    parity = 0.0 if layout == "stripe" else counted * parity_of(layout, len(group)) / len(group)
    rest = rest_size(size, proposal.slice) if proposal.slice else 0
    yield "data", counted - parity
    yield "parity", parity
    yield "rest", rest
    yield "idle", size - counted - rest


def draw_layout(proposal: Proposal, disks: list[Candidate]) -> LayoutDiagram:
    """The disks side by side with gaps between groups, spares last; a larger disk is taller."""
    scale = HEIGHT / max(disk.size for disk in disks)
    parts: list[DiagramPart] = []
    sums = dict.fromkeys(("data", "parity", "rest", "idle", "spare"), 0.0)
    x = 0
    for group in proposal.groups:
        for at in group:
            y = float(HEIGHT)
            for use, size in disk_uses(proposal, disks, group, at):
                sums[use] += size
                if (height := size * scale) >= 0.5:
                    y -= height
                    parts.append(DiagramPart(x, round(y, 1), round(height, 1), use))
            x += DISK + GAP
        x += GROUP_GAP
    for at in proposal.spares:
        height = disks[at].size * scale
        sums["spare"] += disks[at].size
        parts.append(DiagramPart(x, round(HEIGHT - height, 1), round(height, 1), "spare"))
        x += DISK + GAP
    width = max(part.x for part in parts) + DISK
    return LayoutDiagram(width, tuple(parts), describe_uses(sums, proposal.raw))


USES = {
    "data": lazy_text("for data"),
    "parity": lazy_text("for protection"),
    "rest": lazy_text("for the second pool"),
    "spare": lazy_text("spare"),
    "idle": lazy_text("unused"),
}


def describe_uses(sums: dict[str, float], whole: int) -> str:
    """The drawing as text for screen readers: ``67 % for data, 33 % for protection``."""
    percents = [(round(sums[use] * 100 / whole), words) for use, words in USES.items()]
    return ", ".join(f"{percent} % {words}" for percent, words in percents if percent)
