"""Shared by the system tests: a visitor who has set the appliance up and sees its disks."""

from __future__ import annotations

import pytest

from tests.visitor import Visitor


@pytest.fixture(scope="module")
def visitor(appliance) -> Visitor:
    """Signed in as the administrator; the first facts are on the pages."""
    return Visitor.of_new(appliance)
