from __future__ import annotations

import pytest

from appliance.facts.box import Facts
from appliance.recovery import refresh


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The pools that the record of the box was written to. What is in it has tests of its own."""
    written: list[tuple[str, ...]] = []

    def write(pools: tuple[str, ...], _facts: Facts) -> list[str]:
        written.append(pools)
        return []

    monkeypatch.setattr(refresh, "write_box", write)
    return written
