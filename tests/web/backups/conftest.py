"""What tests of backups share."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from time_machine import TimeMachineFixture


@pytest.fixture(autouse=True)
def noon(time_machine: TimeMachineFixture) -> None:
    """The middle of the day: whether a daily backup of two o'clock is due must not depend on when the tests run."""
    time_machine.move_to(datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0))
