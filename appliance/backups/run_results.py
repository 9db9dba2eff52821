"""What the steps of a run of a backup tell each other, and how the run ends."""

from __future__ import annotations

from datetime import datetime

import msgspec

from appliance.errors import Failed
from appliance.message import Message, join_messages
from appliance.operation import Work

NAMED = 5  # folders that were not copied are named in the end, so many


class Run(msgspec.Struct):
    """By guid, which folders have nothing new, and which were not copied and why."""

    taken: datetime | None = None
    unchanged: set[int] = msgspec.field(default_factory=set)
    failures: dict[int, str] = msgspec.field(default_factory=dict)
    record: list[str] = msgspec.field(default_factory=list)  # why the record of the box was not written


def conclude(run: Run, count: int, work: Work) -> None:
    """Note that all ``count`` folders were copied. Raises Failed with those that were not, or where the
    record of the box is old."""
    failures = list(run.failures.values())
    if failures:
        more = Message("And {number} more.", number=len(failures) - NAMED) if len(failures) > NAMED else ""
        raise Failed(count_failures(len(failures), count), join_messages([*failures[:NAMED], more]))
    work.note(Message("All folders were copied: {count}.", count=count))
    if run.record:
        raise Failed(Message("Every folder was copied"), run.record[0])


def count_failures(failed: int, count: int) -> Message:
    if count == 1:
        return Message("The folder was not copied")
    if failed == 1:
        return Message("1 of {count} folders was not copied", count=count)
    return Message("{count} of {count_2} folders were not copied", count=failed, count_2=count)
