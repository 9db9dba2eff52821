"""A rate limiter on the monotonic clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class Interval:
    """``claim_turn`` is true at most once per ``seconds``, and not before the box has run for ``after`` seconds."""

    def __init__(self, seconds: float, *, after: float = 0.0) -> None:
        self.seconds, self.after = seconds, after
        self.last = -seconds

    def claim_turn(self) -> bool:
        now = time.monotonic()
        if now < self.after or now - self.last < self.seconds:
            return False
        self.last = now
        return True

    def take_turn(self, work: Callable[[], object]) -> None:
        """Do the work if its turn has come. After work that fails the turn comes again at
        once, so that its error lasts."""
        if not self.claim_turn():
            return
        try:
            work()
        except Exception:
            self.last = -self.seconds
            raise
