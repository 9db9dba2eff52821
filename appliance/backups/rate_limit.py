"""Slow a stream down to a number of bytes a second, so that disks and network have room for the people who use them."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_BETWEEN_QUESTIONS = 1.0
BURST = 0.25  # seconds of the rate that may be caught up with after a slow moment


def unlimited() -> int:
    return 0


class RateLimit:
    """``rate`` tells the bytes a second that are allowed at this moment, 0 for any number.
    It is asked once a second, so a limit for certain hours begins and ends while a stream flows."""

    def __init__(self, rate: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.clock = clock
        self.due = clock()  # when the next part may move
        self.asked, self.allowed = self.due, rate()

    def delay(self, moved: int) -> float:
        """Seconds to wait after this many bytes have moved."""
        now = self.clock()
        if now - self.asked >= SECONDS_BETWEEN_QUESTIONS:
            self.asked, self.allowed = now, self.rate()
        if self.allowed <= 0:
            self.due = now
            return 0.0
        self.due = max(self.due, now - BURST) + moved / self.allowed
        return max(0.0, self.due - now)
