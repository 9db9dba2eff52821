"""What was read by a clock that was ahead counts for nothing once it is set back."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from web.inventory import store
from web.inventory.models import Source
from workers import collectors

AHEAD = timedelta(days=365)


def test_what_was_read_or_asked_for_by_a_clock_that_was_ahead_does_not_count(db):
    now = timezone.now()
    Source.objects.create(name="pools", checked=now, requested=now)
    assert not collectors.is_due("pools", timedelta(minutes=5))
    assert not store.claim_refresh("pools", not_since=now - timedelta(seconds=3))
    Source.objects.update(checked=now + AHEAD, requested=now + AHEAD)
    assert collectors.is_due("pools", timedelta(minutes=5))
    assert store.claim_refresh("pools", not_since=now - timedelta(seconds=3))
    assert not store.claim_refresh("pools", not_since=now - timedelta(seconds=3))
