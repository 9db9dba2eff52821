"""Shared by the tests of health: a mailbox outside the appliance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.system.mailbox import Mailbox, mailbox


@pytest.fixture(scope="module")
def post() -> Iterator[Mailbox]:
    with mailbox() as box:
        yield box
