"""The agent's own copy of the settings, out of which each record of the box gets its ``settings.json``.

A database that was made anew does not take the place of the settings of a former one by itself: somebody decides first
whether these are brought back. The same holds for the file on a pool.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from appliance.errors import Refused
from appliance.recovery import box_settings
from appliance.recovery.box_settings import LARGEST, MOST_FORMER, BoxSettings
from appliance.system import atomic_file, locks, paths

LOCK = "the settings of the record"


class KeptSettings(msgspec.Struct, frozen=True):
    """What became of settings that were handed over. ``written``: when those that are kept last changed, in seconds."""

    kept: bool
    written: int


def settings_file() -> Path:
    return paths.AGENT_STATE / "settings.json"


def read_kept() -> BoxSettings | None:
    """The settings that go into records; None where there are none, or none that can be read."""
    try:
        return box_settings.read_settings(settings_file().read_bytes()).settings
    except (OSError, Refused):
        return None


def may_replace(known: BoxSettings | None, new: BoxSettings) -> bool:
    """Whether the new settings are of the same database as the known ones, or of one that took its place."""
    return known is None or known.made == new.made or known.made in new.former


def keep_settings(new: BoxSettings, *, former: int = 0) -> KeptSettings:
    """Store the settings unless those of another database are stored. ``former``: the one that these take the place of,
    as somebody has decided; 0: none. Raises OSError, Refused for too many."""
    with locks.hold_locks([LOCK]):
        known = read_kept()
        if known and not may_replace(known, new) and known.made != former:
            return KeptSettings(kept=False, written=known.written)
        before = (*known.former, known.made, former) if known else (former,)
        stays = tuple(dict.fromkeys(one for one in before if one not in {0, new.made}))[-MOST_FORMER:]
        if known and (known.made, known.former, known.groups) == (new.made, stays, new.groups):
            return KeptSettings(kept=True, written=known.written)
        stored = msgspec.structs.replace(new, former=stays, written=int(time.time()))
        if len(stored.text) > LARGEST:
            raise Refused(box_settings.too_large())
        paths.AGENT_STATE.mkdir(parents=True, exist_ok=True, mode=0o700)
        atomic_file.write_atomically(settings_file(), stored.text)
        return KeptSettings(kept=True, written=stored.written)
