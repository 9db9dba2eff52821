"""Django's own checks of addresses, models and settings: the box does not run them at its start."""

from __future__ import annotations

from django.core import checks


def test_django_finds_nothing_wrong():
    assert [found for found in checks.run_checks() if found.is_serious(checks.WARNING)] == []
