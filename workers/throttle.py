"""Coalesce readings: one runs at a time, and all requests during it share the next one."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Coalescer:
    """Runs ``work`` so that each caller of ``run_fresh`` sees a run that began after its call,
    with no run twice at once."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.changed = threading.Condition()
        self.begun = 0
        self.ended = 0
        self.asked = False

    def run_fresh(self) -> None:
        """Return after a run that began later than this call."""
        with self.changed:
            wanted = self.begun + 1
            while self.begun > self.ended:
                self.changed.wait()
                if self.ended >= wanted:
                    return
            self.begun += 1
            self.asked = False
        try:
            self.work()
        finally:
            with self.changed:
                self.ended = self.begun
                self.changed.notify_all()

    def request_run(self) -> None:
        """See that a run begins after this call; at most one caller waits for it, the others are served by the same."""
        with self.changed:
            if self.asked:
                return
            self.asked = True
        self.run_fresh()
