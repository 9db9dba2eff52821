"""Promises of backups over random histories, on two real pools of files: nothing is lost,
mixed up or copied wrongly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.image.machine import Machine
from tests.visitor import Visitor

STEPS = 40
PROGRAM = (Path(__file__).parent / "random_history.py").read_text()


@pytest.fixture(scope="module")
def undisturbed(appliance: Machine, visitor: Visitor) -> Iterator[Machine]:
    """The appliance without its worker, which would look at everything again after each step."""
    appliance.run("systemctl", "stop", "larder-worker", "zfs-zed")
    yield appliance
    appliance.run("systemctl", "start", "zfs-zed", "larder-worker")


@pytest.mark.parametrize("seed", range(1, 9))
def test_copies_are_the_sources_own_snapshots_and_only_retention_takes_them(undisturbed, seed):
    said = undisturbed.run("/opt/larder/venv/bin/python", "-c", PROGRAM, str(seed), str(STEPS), timeout=3600)
    found = json.loads(said.splitlines()[-1])
    assert found["done"]["run 0"] > 0
    assert found["compared"] > 0
