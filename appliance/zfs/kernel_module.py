"""The ZFS module that the kernel runs: its version, and whether that one is known to spoil files."""

from __future__ import annotations

import re
from pathlib import Path

from appliance.message import Message

VERSION = Path("/sys/module/zfs/version")
Number = tuple[int, int, int]
REWRITES_SINCE: Number = (2, 3, 4)  # the first release with zfs-rewrite(8)
DECRYPTS_SINCE: Number = (2, 3, 3)
# From, up to but not including, what it does. Issue 15526 of openzfs/zfs, closed by 2.2.2 and 2.1.14; commit dceca0d4
# ("Fix read corruption after block clone after truncate"), which is in 2.3.8 and not in 2.3.4.
FAULTS: tuple[tuple[Number, Number, str], ...] = (
    (
        (2, 1, 4),
        (2, 1, 14),
        Message("Copies of files that have just been written can hold zeros in place of their content."),
    ),
    (
        (2, 2, 0),
        (2, 2, 2),
        Message("Copies of files that have just been written can hold zeros in place of their content."),
    ),
    ((2, 3, 0), (2, 3, 8), Message("A file that was shortened after it was copied can be read as zeros in places.")),
)


def read_version() -> str:
    """As the module itself says (``2.3.9-0+deb13u1``); empty where none is loaded."""
    try:
        return VERSION.read_text(encoding="ascii", errors="replace").strip()[:60]
    except OSError:
        return ""


def parse_version(text: str) -> Number | None:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def sends_decrypted_well(text: str) -> bool:
    """Whether that version can send an encrypted dataset decrypted without spoiling it (openzfs/zfs#12014)."""
    number = parse_version(text)
    return number is not None and number >= DECRYPTS_SINCE


def known_fault(text: str) -> str:
    """What is wrong with that version, in a sentence; empty where nothing is known."""
    number = parse_version(text)
    if number is None:
        return ""
    return next((says for first, mended, says in FAULTS if first <= number < mended), "")


def can_rewrite(text: str) -> bool:
    """Whether that version has ``zfs rewrite``, which writes the blocks of files anew in their place (since 2.3.4)."""
    number = parse_version(text.removeprefix("zfs-kmod-").removeprefix("zfs-"))
    return number is not None and number >= REWRITES_SINCE
