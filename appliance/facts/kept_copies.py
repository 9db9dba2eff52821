"""How many copies of a folder stay where a backup has brought them."""

from __future__ import annotations

from appliance.errors import Reason, Refused
from appliance.message import Message
from appliance.strict_struct import StrictStruct

GRAINS = ("hourly", "daily", "weekly", "monthly")
MOST_KEPT = 500


class Keep(StrictStruct):
    """How many copies stay at the destination: the newest of each hour, day, week and month."""

    hourly: int = 24
    daily: int = 14
    weekly: int = 8
    monthly: int = 12

    def __post_init__(self) -> None:
        for grain in GRAINS:
            if not 0 <= self.count(grain) <= MOST_KEPT:
                raise Refused(
                    Reason("kept-count-out-of-range", "Enter a number from 0 to {most}.", field=grain, most=MOST_KEPT)
                )

    def count(self, grain: str) -> int:
        return int(getattr(self, grain))

    def keeps_fewer(self, now: Keep | None) -> bool:
        """Whether less stays than by ``now``; None keeps everything."""
        return now is None or any(self.count(grain) < now.count(grain) for grain in GRAINS)

    @property
    def sentence(self) -> str:
        return Message(
            "{hourly} hourly, {daily} daily, {weekly} weekly and {monthly} monthly copies",
            hourly=self.hourly,
            daily=self.daily,
            weekly=self.weekly,
            monthly=self.monthly,
        )
