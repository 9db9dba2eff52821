"""What is done every so often, by the clock that counts from the box's start and that nobody sets."""

from __future__ import annotations

import time


class Interval:
    """``claim_turn`` is true at most once in so many seconds, and not before the box has run for ``after`` seconds."""

    def __init__(self, seconds: float, *, after: float = 0.0) -> None:
        self.seconds, self.after = seconds, after
        self.last = -seconds

    def claim_turn(self) -> bool:
        now = time.monotonic()
        if now < self.after or now - self.last < self.seconds:
            return False
        self.last = now
        return True
