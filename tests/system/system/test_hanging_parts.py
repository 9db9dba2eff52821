"""Parts of the worker hang, one after the other: it is restarted, and says in what it hung."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting, faults
from tests.system.mailbox import Mailbox, mailbox
from tests.visitor import Visitor

RESTARTS = f"{faults.RUN}/restarts.json"


@pytest.fixture(scope="module")
def post() -> Iterator[Mailbox]:
    with mailbox() as box:
        yield box


@pytest.fixture(scope="module", autouse=True)
def spoilable(appliance: Machine, visitor: Visitor, post: Mailbox) -> Iterator[None]:
    alerting.tell(visitor, post)
    with faults.worker_replaced(appliance, faults.QUICK_WATCHDOG):
        yield


@pytest.mark.parametrize("name", faults.THAT_MAY_HANG)
def test_part_that_hangs_is_named_once_by_the_worker_that_follows(appliance, visitor, post, name):
    # An alert of something that has happened stays for two days: it goes with the note that it is made from.
    appliance.run("rm", "-f", RESTARTS)
    wait_for(
        "the end of the last one",
        lambda: alerting.hasten(appliance) or not alerting.are_open(appliance, "worker.restarted"),
        timeout=240,
        every=2,
    )
    since, before = alerting.begin(appliance, post), faults.restarts(appliance)
    with faults.spoiled(appliance, "hang", name):
        wait_for("another worker", lambda: faults.restarts(appliance) > before, timeout=300, every=1)
    wait_for("its alert", lambda: alerting.are_open(appliance, "worker.restarted"), timeout=240, every=2)
    assert json.loads(appliance.run("cat", RESTARTS))["stage"] == name
    alerting.arrived(post, "background worker hung and was restarted")
    assert alerting.kinds_since(appliance, since) == ["worker.restarted"]
    assert faults.restarts(appliance) == before + 1
