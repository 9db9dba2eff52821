"""How snapshots are called that Larder makes by itself: in UTC, and so that Samba's shadow_copy2 reads the moment in it.

A household's clock jumps twice a year and UTC does not. ``FORMAT`` is what ``shadow:format`` and strftime(3) both take.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

# From the finest to the coarsest: a snapshot that serves several is called by the coarsest.
GRAINS = ("frequent", "hourly", "daily", "weekly", "monthly")
PREFIX = "larder-"
FORMAT = "%Y.%m.%d-%H.%M.%S"
# The words in the place of a grain: where a person took it, and where Larder did before a change that is not easily undone.
BY_HAND = "manual"
BEFORE = "before"
PATTERN = re.compile(rf"{PREFIX}(?P<grain>[a-z]+)-(?P<at>\d{{4}}(?:\.\d\d){{2}}-\d\d(?:\.\d\d){{2}})")


def name_for(grain: str, at: datetime) -> str:
    """The short name of a snapshot: ``larder-hourly-2026.11.21-12.00.00``."""
    return f"{PREFIX}{grain}-{at.astimezone(UTC).strftime(FORMAT)}"


def is_for(word: str, name: str) -> bool:
    """Whether Larder gives such a name, with this word in the place of the grain."""
    found = PATTERN.fullmatch(name)
    return found is not None and found["grain"] == word


def coarsest(grains: tuple[str, ...]) -> str:
    return max(grains, key=GRAINS.index)
