"""What forms in several places let people choose from."""

from __future__ import annotations

HOURS = [(hour, f"{hour:02d}:00") for hour in range(24)]  # of the box's own clock
