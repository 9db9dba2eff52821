"""The worker as it is, whose parts can be made to fail or hang one by one; a test starts it
inside, in the worker's place.

A file beside this one that is named after a part (``appliance/alerts/sources.py``) says what becomes of that
part. The clocks run faster, so that a run of all parts takes minutes: readings and alert rules are due after
seconds, and waits are short.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from appliance.alerts import kinds
from workers import __main__ as worker  # it sets Django up, so it comes first
from workers import background, collectors, guard, housekeeping

FAULTS = Path(__file__).parent
FASTER = 60
# What a part says that fails in a way nobody thought of: no exception of Larder's, and hardly a text.
NONSENSE = "\x1b[31m\x00\ufffd nonsense " * 20


class Nonsense(Exception):
    """Of no kind that any part expects."""


def spoil(name: str, work: Callable[[], Any]) -> Callable[[], Any]:
    """The work of a part, or what has been put in its place."""

    def run() -> Any:
        try:
            fault = (FAULTS / name).read_text().strip()
        except FileNotFoundError:
            return work()
        if fault == "hang":
            # The thread's limit is hours: that of the one that hangs is over at once.
            background.LIMITS[name] = 0.0
            time.sleep(3600)
        if name == "alerts":
            work()  # a rule that breaks: the others are evaluated, and say so
        raise Nonsense(NONSENSE)

    return run


def spoil_parts() -> None:
    """Every part of the background work goes through one of these two."""
    guarded, update = guard.run_guarded, collectors.update_source
    guard.run_guarded = lambda name, work: guarded(name, spoil(name, work))
    collectors.update_source = lambda name, read, **options: update(name, spoil(name, read), **options)


def hurry() -> None:
    from workers import tick

    for code, kind in list(kinds.KINDS.items()):
        kinds.KINDS[code] = replace(kind, wait=kind.wait // FASTER)
    tick.ALERTS_EVERY = timedelta(seconds=8)
    collectors.WHEN_NOBODY_LOOKS = timedelta(seconds=20)
    collectors.TEMPERATURES_EVERY = timedelta(seconds=30)
    housekeeping.looks.seconds, housekeeping.looks.after = 20.0, 0.0


if __name__ == "__main__":
    spoil_parts()
    hurry()
    sys.exit(worker.main())
