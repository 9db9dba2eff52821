"""Up to when a copy is complete: the mark ``larder:copied`` that each run leaves on the copy it began with.

A folder that has nothing new is not sent, so its newest copy may be old and complete all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from appliance.facts import user_properties
from appliance.facts.datasets import Dataset

MOST_NAMED = 200  # guids of 20 digits: a ZFS user property holds 8 KiB
LAST = 2**33  # seconds: the year 2242


class RunMark(msgspec.Struct, frozen=True):
    """``run``: the moment in the run's name. ``at``: that of its snapshots, in seconds since 1970, which may be later.
    ``left``: the guids of the folders that it did not copy."""

    run: str
    at: int
    left: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def complete(self) -> datetime | None:
        """Up to when every folder is complete; None where the run left one out."""
        return None if self.left else datetime.fromtimestamp(self.at, UTC)

    def complete_since(self, guid: int) -> datetime | None:
        """Up to when the copy of the folder with this guid is complete by this run."""
        return None if guid in self.left else datetime.fromtimestamp(self.at, UTC)


def parse_run_mark(text: str) -> RunMark | None:
    """The mark in a text; None where there is none that Larder could have written."""
    try:
        found = msgspec.json.decode(text, type=RunMark) if text else None
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found if found and 0 < found.at < LAST else None


def mark_of(run: str, at: datetime, left: Iterable[int]) -> RunMark | None:
    """The mark of a run; None where more folders were left than it can name."""
    guids = tuple(sorted(left))
    return RunMark(run, int(at.timestamp()), guids) if len(guids) <= MOST_NAMED else None


def run_mark_of(copy: Dataset | None) -> RunMark | None:
    """The mark on a copy; None where there is none that Larder could have written."""
    noted = copy.properties.get(user_properties.COPIED) if copy else None
    if noted is None or noted.source != "local":
        return None
    return parse_run_mark(noted.value)
