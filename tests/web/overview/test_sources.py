"""How a reading is noted: when it was, how it went, and whether pages have anything new to show."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from web.inventory import store
from web.inventory.models import Source

pytestmark = pytest.mark.django_db(databases=["default", "inventory"])


def version() -> int:
    return Source.objects.get(name="pools").version


def test_first_reading_is_noted_with_its_time_and_its_length():
    at = timezone.now() - timedelta(seconds=30)
    store.checked("pools", changed=False, seconds=1.5, at=at)
    found = Source.objects.get(name="pools")
    assert (found.checked, found.seconds, found.error, found.version, found.requested) == (at, 1.5, "", 0, None)


@pytest.mark.parametrize(("changed", "error"), [(True, ""), (False, "gone"), (True, "gone")])
def test_first_reading_with_news_moves_the_version(changed, error):
    store.checked("pools", changed=changed, error=error)
    assert version() == 1


def test_version_moves_with_what_was_read_and_with_an_error_that_comes_changes_or_ends():
    store.checked("pools", changed=False)
    moves = []
    for changed, error in [(False, ""), (True, ""), (False, "gone"), (False, "gone"), (False, "away"), (False, "")]:
        before = version()
        store.checked("pools", changed=changed, error=error)
        moves.append(version() - before)
    assert moves == [0, 1, 1, 0, 1, 1]


def test_noting_a_reading_keeps_when_it_was_asked_for():
    store.claim_refresh("pools", not_since=timezone.now())
    asked = Source.objects.get(name="pools").requested
    store.checked("pools", changed=True)
    assert asked and Source.objects.get(name="pools").requested == asked


def test_noting_a_reading_is_one_query(django_assert_num_queries):
    with django_assert_num_queries(1, using="inventory"):
        store.checked("pools", changed=True)
