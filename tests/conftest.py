"""Shared by all tests: unit and web tests need nothing, system and browser tests borrow a warm appliance."""

from __future__ import annotations

import gc
import json
import os
from collections import defaultdict
from collections.abc import Generator, Iterator

import pytest

from deploy.image import build, states
from deploy.image.machine import Machine
from tests import durations, machine_report, warm

LONGEST_WITHOUT_A_MACHINE = "tests/gallery/test_pseudo_language.py"
_seconds: dict[str, float] = defaultdict(float)
_described: set[str] = set()  # machines that have been asked what is wrong with them


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as soak what is not in the list of every run; put files that last long first, and those never
    measured before all. The longest tests without a machine come first: one at the end would leave the other
    core idle. The rest of the gallery stays behind Django's tests, which do not run where a browser has been
    driven (its event loop goes on).

    With ``PART=1/4`` in the environment only that part of the files with a machine is left.
    """
    listed, known = durations.every_run(), durations.known_durations()
    seconds: dict[str, float] = defaultdict(float)
    without_soak = config.getoption("markexpr") == "not soak"
    for item in items:
        if item.nodeid.startswith(durations.WITH_A_MACHINE):
            if not durations.is_listed(item.nodeid, listed):
                item.add_marker(pytest.mark.soak)
            if without_soak and item.get_closest_marker("soak"):
                continue  # it will not be run, so its file is not longer for it
            seconds[durations.file_of(item.nodeid)] += known.get(item.nodeid, durations.UNKNOWN)
    if part := os.environ.get("PART"):
        chosen = durations.part_of(seconds, *(int(number) for number in part.split("/")))
        left = [
            item
            for item in items
            if durations.file_of(item.nodeid) not in seconds or durations.file_of(item.nodeid) in chosen
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = left
    files = {item.nodeid: durations.file_of(item.nodeid) for item in items}
    items.sort(key=lambda item: (-seconds[files[item.nodeid]], files[item.nodeid] != LONGEST_WITHOUT_A_MACHINE))


@pytest.hookimpl(trylast=True)
def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> str:
    expected = durations.expected_seconds(item.nodeid for item in items)
    return f"Tests with a machine will take about {expected / 60:.0f} minutes, one after the other." if expected else ""


def pytest_collection_finish() -> None:
    """Have the collector pass over ten thousand tests and what they import, and look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the first failure on a machine what the machine says of itself."""
    report = yield
    machine = getattr(item, "funcargs", {}).get("appliance")
    if report.failed and isinstance(machine, Machine) and machine.name not in _described:
        _described.add(machine.name)
        report.sections.append((f"the machine {machine.name}", machine_report.describe_machine(machine)))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep how long each test with a machine took; the lanes of a parallel run tell it to the
    process that started them."""
    if hasattr(session.config, "workerinput"):
        return
    measured = {test: round(took, 1) for test, took in _seconds.items() if test.startswith(durations.WITH_A_MACHINE)}
    if not measured:
        return
    durations.MEASURED.parent.mkdir(exist_ok=True)
    durations.MEASURED.write_text(json.dumps(dict(sorted(measured.items())), indent=1) + "\n")
    for line in durations.too_long(measured, durations.every_run()):
        print(f"\nTOO LONG: {line}")


@pytest.fixture(scope="session")
def layer():
    """The installed image of this checkout; built where it is not in the cache."""
    return build.build_system_layer()


@pytest.fixture(scope="module")
def appliance(request) -> Iterator[Machine]:
    """A booted appliance on throw-away disks, shared by a file of tests, in the state that the
    file asks for (tests/warm.py).

    LARDER_MACHINE names a running one to use instead, while a test is being written.
    """
    if name := os.environ.get("LARDER_MACHINE"):
        yield Machine.find(name)
        return
    layer = request.getfixturevalue("layer")
    name = f"test-{os.getpid()}-{request.module.__name__.rsplit('.', 1)[-1]}"
    with states.borrow_machine(
        name, layer, warm.saved_state(layer, getattr(request.module, "STATE", warm.USUAL))
    ) as found:
        yield found
