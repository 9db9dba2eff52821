"""What snapshots hold: exact for a row of neighbours (``lzc_snaprange_space``), and who keeps which from being destroyed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from appliance.errors import Failed
from appliance.zfs import core

MOST_RANGES = 100
MOST_HELD = 200


@dataclass(frozen=True)
class Measured:
    """``ranges``: bytes for each that was asked for, None where a snapshot of it has gone. ``holds``: for each snapshot's
    short name its tags, hostile text, and when each was set in seconds since 1970."""

    ranges: tuple[int | None, ...]
    holds: dict[str, dict[str, int]] = field(default_factory=dict)


def measure(dataset: str, ranges: Sequence[tuple[str, str]], held: Sequence[str]) -> Measured:
    """Bytes that come back when all from one snapshot to another go, both included; and the holds. Short names."""
    sizes: list[int | None] = []
    for first, last in ranges:
        try:
            sizes.append(core.range_space(f"{dataset}@{first}", f"{dataset}@{last}"))
        except Failed:
            sizes.append(None)
    holds = {}
    for name in held:
        try:
            holds[name] = core.holds(f"{dataset}@{name}")
        except Failed:
            continue
    return Measured(tuple(sizes), holds)
