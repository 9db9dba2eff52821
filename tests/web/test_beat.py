"""The clock goes on whatever the date says, and over a Redis that is away."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import time_machine

from workers import celery
from workers.celery import Beat


class App:
    """Takes what is sent; for a while it cannot. The clock is stopped once there was enough."""

    def __init__(self, beat: Beat, enough: int, away: range = range(0)) -> None:
        self.beat, self.enough, self.away = beat, enough, away
        self.sent: list[str] = []
        self.tries = 0

    def send_task(self, name: str, **more: Any) -> None:
        assert more["expires"] == celery.SECONDS_BETWEEN_TICKS
        self.tries += 1
        if self.tries in self.away:
            raise ConnectionError("Redis is away")
        self.sent.append(name)
        if len(self.sent) == self.enough:
            self.beat.stop(None)


@pytest.fixture
def beat(monkeypatch) -> Beat:
    monkeypatch.setattr(celery, "SECONDS_BETWEEN_TICKS", 0.01)
    return Beat(None)


def test_a_date_that_is_set_back_does_not_stop_it(beat):
    app = App(beat, enough=3)
    with time_machine.travel("2030-01-01", tick=True) as date:
        send = app.send_task

        def and_back(name: str, **more: Any) -> None:
            send(name, **more)
            date.move_to("2026-01-01")

        app.send_task = and_back  # type: ignore[method-assign]
        beat.beat(app)
    assert app.sent == ["workers.tick"] * 3


def test_it_goes_on_after_redis_was_away_and_says_so_once(beat, caplog):
    app = App(beat, enough=3, away=range(2, 6))
    with caplog.at_level(logging.WARNING):
        beat.beat(app)
    assert app.tries == 7
    assert [line for line in caplog.messages if "Redis" in line] == ["the clock does not reach Redis: Redis is away"]
