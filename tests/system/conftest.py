"""Shared by the system tests: a visitor who has set the appliance up and sees its disks."""

from __future__ import annotations

import pytest

from tests.visitor import Visitor


@pytest.fixture(scope="module")
def visitor(appliance) -> Visitor:
    """Signed in as the administrator; the first facts are on the pages."""
    found = Visitor(appliance)
    found.set_up()
    found.wait_until("/disks/", *(disk.serial for disk in appliance.disks))
    return found
