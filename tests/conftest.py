"""Shared by all tests: unit and web tests need nothing, system and browser tests borrow a warm appliance."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from deploy.image import build, states
from deploy.image.machine import Machine


@pytest.fixture(scope="session")
def layer():
    """The installed image of this checkout; built where it is not in the cache."""
    return build.system()


@pytest.fixture(scope="module")
def appliance(request) -> Iterator[Machine]:
    """A booted appliance on throw-away disks, shared by a file of tests.

    LARDER_MACHINE names a running one to use instead, while a test is being written.
    """
    if name := os.environ.get("LARDER_MACHINE"):
        yield Machine.find(name)
        return
    layer = request.getfixturevalue("layer")
    with states.borrowed(f"test-{os.getpid()}-{request.module.__name__.rsplit('.', 1)[-1]}", layer) as found:
        yield found
