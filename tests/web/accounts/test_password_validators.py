"""Passwords that thousands of people use are refused, and their list is not kept in memory."""

from __future__ import annotations

import gc
import gzip
import tracemalloc

import pytest
from django.contrib.auth.password_validation import CommonPasswordValidator as Djangos
from django.contrib.auth.password_validation import get_default_password_validators
from django.core.exceptions import ValidationError

from web.accounts.password_validators import CommonPasswordValidator


@pytest.fixture
def validator() -> Djangos:
    """The one that the settings name."""
    return next(one for one in get_default_password_validators() if isinstance(one, Djangos))


def listed() -> list[str]:
    with gzip.open(Djangos().DEFAULT_PASSWORD_LIST_PATH, "rt", encoding="utf-8") as lines:
        return [line.strip() for line in lines]


@pytest.mark.parametrize("at", [0, 10_000, -1])
@pytest.mark.parametrize("typed", [str, str.upper, "  {}  ".format])
def test_a_common_password_is_refused_however_it_is_typed(validator, at, typed):
    with pytest.raises(ValidationError) as refused:
        validator.validate(typed(listed()[at]))
    assert refused.value.code == "password_too_common"


def test_another_password_is_accepted(validator):
    assert validator.validate("long and plain words") is None


def test_the_list_is_not_kept(validator):
    tracemalloc.start()
    try:
        validator.validate("long and plain words")
        gc.collect()
        kept, _most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(validator, CommonPasswordValidator)
    assert kept < 100_000, "Django's own keeps more than two megabytes"
