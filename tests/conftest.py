"""Shared by all tests: unit and web tests need nothing, system and browser tests borrow a warm appliance."""

from __future__ import annotations

import gc
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.image import build, states
from deploy.image.machine import Machine

DURATIONS = Path(__file__).with_name("durations.json")  # seconds of each file of tests with a machine, on two cores
MEASURED = Path("build/durations.json")
WITH_A_MACHINE = ("tests/system/", "tests/browser/")
_seconds: dict[str, float] = defaultdict(float)


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


EVERY_RUN = Path(__file__).with_name("every_run.txt")


def every_run() -> tuple[str, ...]:
    """What of the tests with a machine is in every run."""
    lines = (line.strip() for line in EVERY_RUN.read_text().splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is not in the list of every run is soak. Files that take long come first, so that two lanes end at about the same
    time; those not measured yet come before all."""
    listed = every_run()
    for item in items:
        if item.nodeid.startswith(WITH_A_MACHINE) and not any(
            item.nodeid == one or item.nodeid.startswith((f"{one}::", f"{one}[")) for one in listed
        ):
            item.add_marker(pytest.mark.soak)
    known: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    items.sort(key=lambda item: -known.get(file_of(item.nodeid), float("inf")))


def pytest_collection_finish() -> None:
    """Have the collector pass over ten thousand tests and what they import, and look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[file_of(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep how long each file took; the lanes of a parallel run tell it to the process that started them."""
    if hasattr(session.config, "workerinput"):
        return
    machines = {file: round(took) for file, took in _seconds.items() if file.startswith(WITH_A_MACHINE)}
    if machines:
        MEASURED.parent.mkdir(exist_ok=True)
        MEASURED.write_text(json.dumps(dict(sorted(machines.items())), indent=1) + "\n")


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
