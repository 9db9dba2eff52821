"""Where a dataset's space goes, drawn as one bar: data, snapshots, what is below, what is kept free, what is left."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.facts.datasets import Dataset

WIDTH = 300  # in the units of the drawing


@dataclass(frozen=True)
class SpaceBarPart:
    """A piece of the bar: what it is, which colour that has, its bytes, and where it is drawn."""

    name: str
    use: str
    size: int
    x: float
    width: float


@dataclass(frozen=True)
class SpaceBar:
    parts: tuple[SpaceBarPart, ...]
    words: str

    width = WIDTH


def draw_space(dataset: Dataset) -> SpaceBar:
    """Of what is used and what is left of a limit or of the pool. A piece too thin to be seen is drawn one unit wide."""
    sizes = (
        ("Files", "data", dataset.used_by_data),
        ("Snapshots", "parity", dataset.used_by_snapshots),
        ("Below it", "rest", dataset.used_by_children),
        ("Kept free", "spare", dataset.used_by_reservation),
        ("Free", "idle", dataset.available),
    )
    whole = sum(size for _name, _use, size in sizes) or 1
    parts, x = [], 0.0
    for name, use, size in sizes:
        if size <= 0:
            continue
        width = max(size * WIDTH / whole, 1.0)
        parts.append(SpaceBarPart(name, use, size, round(x, 1), round(min(width, WIDTH - x), 1)))
        x = min(x + width, WIDTH - 1.0)
    told = ", ".join(f"{part.name} {round(part.size * 100 / whole)} %" for part in parts)
    return SpaceBar(tuple(parts), told)
