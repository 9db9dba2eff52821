"""Names of the snapshots that Larder takes: a prefix, a grain or another word, and the moment in UTC.

Samba's shadow_copy2 reads the moment from these names: ``shares/smb.py`` derives its ``shadow:format`` from this
format. The time is in UTC because the clock of a household jumps twice a year.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

# From finest to coarsest. A snapshot that serves several grains is named after the coarsest.
GRAINS = ("frequent", "hourly", "daily", "weekly", "monthly")
PREFIX = "larder-"
FORMAT = "%Y.%m.%d-%H.%M.%S"  # strftime(3)
MOMENT = re.compile(r"\d{4}(?:\.\d\d){2}-\d\d(?:\.\d\d){2}")  # what FORMAT writes
# Words in place of the grain: taken by a user, or by Larder before a change that is hard to undo.
BY_HAND = "manual"
BEFORE = "before"
IMPORT = "import"  # taken of a folder once files of another NAS were copied into it
BACKUP = "backup"  # taken by a backup, at its source and at its destination
PATTERN = re.compile(rf"{PREFIX}(?P<grain>[a-z]+)-(?P<at>{MOMENT.pattern})")


def name_for(grain: str, at: datetime) -> str:
    """The short name of a snapshot: ``larder-hourly-2026.11.21-12.00.00``."""
    return f"{PREFIX}{grain}-{format_moment(at)}"


def format_moment(at: datetime) -> str:
    """A moment as it stands in a name: ``2026.11.21-12.00.00``."""
    return at.astimezone(UTC).strftime(FORMAT)


def parse_moment(text: str) -> datetime | None:
    """The moment that ``format_moment`` wrote; None for any other text."""
    try:
        return datetime.strptime(text, FORMAT).replace(tzinfo=UTC) if MOMENT.fullmatch(text) else None
    except ValueError:
        return None


def is_for(word: str, name: str) -> bool:
    """Whether Larder names a snapshot so, with this word in place of the grain."""
    match = PATTERN.fullmatch(name)
    return match is not None and match["grain"] == word


def grain_of(name: str) -> str:
    """The grain in the name of an automatic snapshot; empty for any other name."""
    match = PATTERN.fullmatch(name)
    known = match is not None and match["grain"] in GRAINS and parse_moment(match["at"]) is not None
    return match["grain"] if match and known else ""


def coarsest_grain(grains: tuple[str, ...]) -> str:
    return max(grains, key=GRAINS.index)
