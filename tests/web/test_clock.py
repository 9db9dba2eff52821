"""A clock that is set back, as at the start of a box whose battery is flat, stops nothing."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from web.inventory import store
from web.inventory.models import Source
from workers import celery, collectors

AHEAD = timedelta(days=365)


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """The tasks that the clock asked for; the queue is away at the first."""
    found: list[str] = []

    def send(name: str, *, expires: float) -> None:
        found.append(name)
        if len(found) == 1:
            raise OSError("no Redis")

    monkeypatch.setattr(celery.app, "send_task", send)
    monkeypatch.setattr(celery, "SECONDS_BETWEEN_TICKS", 0.001)
    return found


def test_the_worker_s_clock_goes_on_after_redis_was_away(asked):
    clock = celery.Clock(None)
    enough = threading.Event()

    class Counted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if len(asked) >= 10:
                enough.set()
                self.set()
            return super().wait(timeout)

    clock.ended = Counted()
    clock.start(None)
    assert enough.wait(30)
    assert set(asked) == {"workers.tick"}


def test_what_was_read_or_asked_for_by_a_clock_that_was_ahead_does_not_count(db):
    now = timezone.now()
    Source.objects.create(name="pools", checked=now, requested=now)
    assert not collectors.due("pools", timedelta(minutes=5))
    assert not store.claim_refresh("pools", not_since=now - timedelta(seconds=3))
    Source.objects.update(checked=now + AHEAD, requested=now + AHEAD)
    assert collectors.due("pools", timedelta(minutes=5))
    assert store.claim_refresh("pools", not_since=now - timedelta(seconds=3))
    assert not store.claim_refresh("pools", not_since=now - timedelta(seconds=3))
