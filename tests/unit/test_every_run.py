"""The list of tests with a machine that are in every run names tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = [
    line
    for line in (ROOT / "tests/every_run.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]


@pytest.mark.parametrize("one", LISTED)
def test_what_is_in_every_run_exists(one):
    file, _colons, name = one.partition("::")
    text = (ROOT / file).read_text()
    assert not name or f"def {name.partition('[')[0]}(" in text
    assert "pytestmark = pytest.mark.soak" not in text
