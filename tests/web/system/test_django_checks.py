"""Django's own checks of addresses, models and settings: the box does not run them at its start."""

from __future__ import annotations

from django.core.management import call_command


def test_django_finds_nothing_wrong():
    call_command("check", fail_level="WARNING")
