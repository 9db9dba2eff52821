"""A rate limiter on the monotonic clock."""

from __future__ import annotations

import time


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
