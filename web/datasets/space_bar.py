"""A bar of a dataset's space: files, snapshots, folders below, reserved and free space."""

from __future__ import annotations

import msgspec
from django.utils.translation import gettext

from appliance.facts.datasets import Dataset

WIDTH = 300  # in the units of the drawing


class SpaceBarPart(msgspec.Struct, frozen=True):
    """One part of the bar: its name, the use that decides its colour, its bytes and position."""

    name: str
    use: str
    size: int
    x: float
    width: float


class SpaceBar(msgspec.Struct, frozen=True):
    parts: tuple[SpaceBarPart, ...]
    words: str

    width = WIDTH


def draw_space(dataset: Dataset) -> SpaceBar:
    """The bar of used and free space, where free is what the limit or the pool leaves.
    Every part is at least one unit wide."""
    sizes = (
        (gettext("Files"), "data", dataset.used_by_data),
        (gettext("Snapshots"), "parity", dataset.used_by_snapshots),
        (gettext("Below it"), "rest", dataset.used_by_children),
        (gettext("Reserved"), "spare", dataset.used_by_reservation),
        (gettext("Free"), "idle", dataset.available),
    )
    whole = sum(size for _name, _use, size in sizes) or 1
    parts, x = [], 0.0
    for name, use, size in sizes:
        if size <= 0:
            continue
        width = max(size * WIDTH / whole, 1.0)
        parts.append(SpaceBarPart(name, use, size, round(x, 1), round(min(width, WIDTH - x), 1)))
        x = min(x + width, WIDTH - 1.0)
    words = ", ".join(f"{part.name} {round(part.size * 100 / whole)} %" for part in parts)
    return SpaceBar(tuple(parts), words)
