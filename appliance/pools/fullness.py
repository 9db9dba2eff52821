"""How full a pool is, as a word and a level: the one table that pages, alerts and forecasts use. Pure.

- From 80 % on there is time to plan: 80 % is the classic advice for ZFS (Oracle Solaris ZFS
Administration Guide, "Storage
  Pool Practices"), because a copy-on-write file system needs free space to write to, and
  fragments as that becomes rare.
- From 90 % on writing becomes noticeably slow: the allocator searches longer and takes worse-fitting pieces.
- At 96 % a metaslab with less than 4 % free is searched for the best fit instead of the next one
(``metaslab_df_free_pct`` is 4),
  which is very slow; and little is left.
- At 99 % programs that write fail. ZFS refuses writes before its own reserve (``spa_slop_shift``, 1/32 of the pool) is
  touched, so that deleting stays possible. Per cent is of what files can take, which is without that reserve.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from appliance.message import Message

Level = Literal["", "notice", "warning", "critical"]

NOTICE, WARNING, CRITICAL, FULL = 80, 90, 96, 99  # per cent, rounded down


class Fullness(msgspec.Struct, frozen=True):
    """``word`` follows the name of a pool: ``tank is nearly full.`` ``level`` is as severe as the alert about it."""

    percent: int  # from here on
    level: Level
    word: str = ""
    meaning: str = ""


ENOUGH = Fullness(0, "")
TABLE = (
    Fullness(FULL, "critical", Message("full"), Message("What is in it is safe, but nothing more can be written.")),
    Fullness(
        CRITICAL,
        "critical",
        Message("almost out of space"),
        Message("Writing is very slow now, and fails when it is full."),
    ),
    Fullness(WARNING, "warning", Message("nearly full"), Message("Writing becomes slow, and fails when it is full.")),
    Fullness(
        NOTICE,
        "notice",
        Message("filling up"),
        Message("There is room left. From {warning} % on it becomes slow.", warning=WARNING),
    ),
    ENOUGH,
)
ADVICE = Message("Delete what is not needed, also old snapshots that still hold it, or add disks.")


def percent_used(used: int, total: int) -> int:
    """Whole per cent, rounded down, from 0 to 100; both in bytes."""
    return max(0, min(100, used * 100 // total)) if total > 0 else 0


def classify(percent: int) -> Fullness:
    """The row of the table for so many per cent."""
    return next((row for row in TABLE if percent >= row.percent), ENOUGH)
