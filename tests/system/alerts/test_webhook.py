"""The webhook for real: refused where it leads inside and nobody allowed that, tried again while its
server fails, then told once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.webhook import Hook, webhook
from tests.visitor import Visitor

OFFLINE = "tank runs without a disk that was taken offline"
INSIDE = "The webhook leads to an address inside your own network, which is not allowed in the settings."
ITSELF = "The webhook leads to this box itself or to nowhere."


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with webhook() as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def tank(appliance: Machine, visitor: Visitor) -> None:
    alerting.make_tank(appliance)
    visitor.wait_until("/pools/", "tank", timeout=180)


def said(appliance: Machine, text: str) -> int:
    """How often the worker has said that in the system's journal."""
    return appliance.run("journalctl", "-u", "larder-worker", "-o", "cat", "--no-pager").count(text)


def tries(appliance: Machine, since: int, answer: str) -> int:
    """How often the webhook of an alert since then was tried, whose last answer was that."""
    query = (
        f"select tries from larder_alerts_message where way = 'webhook' and alert_id > {since} and answer like "
        f"'%{answer}%'"
    )
    return sum(row[0] for row in alerting.ask(appliance, query))


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1/", "http://10.0.2.15/", "https://localhost/", "http://169.254.169.254/"]
)
def test_to_the_box_itself_it_never_leads_also_where_the_own_network_is_allowed(visitor, post, address):
    alerting.tell(visitor, post, webhook=address, webhook_private="on")
    assert ITSELF in alerting.try_way(visitor, "webhook", ITSELF)


def test_inside_it_leads_only_where_that_is_allowed_which_is_logged_once_and_nothing_is_lost(
    appliance, visitor, post, hook
):
    alerting.tell(visitor, post, webhook=hook.address)
    alerting.try_way(visitor, "webhook", INSIDE)
    since, before = alerting.begin(appliance, post), said(appliance, INSIDE)
    guid = alerting.guid_of(appliance, 4)
    appliance.run("zpool", "offline", "tank", guid)
    alerting.raised(appliance, visitor, "pool.offline")
    alerting.arrived(post, OFFLINE)  # one way that is refused holds up no other

    def three_times() -> bool:
        alerting.hasten(appliance)
        return tries(appliance, since, "not allowed in the settings") >= 3

    wait_for("three tries", three_times, timeout=180, every=6)
    assert said(appliance, INSIDE) == before + 1
    assert hook.tries == 0

    hook.status = 503
    alerting.tell(visitor, post, webhook=hook.address, webhook_private="on")
    alerting.hasten(appliance)
    wait_for("the server's refusal", lambda: tries(appliance, since, "The webhook answered: 503"), timeout=120, every=3)
    assert hook.taken == []
    hook.status = 200
    alerting.hasten(appliance)
    wait_for("what was posted", lambda: hook.taken, timeout=120)
    (told,) = hook.taken
    assert told.path == "/attic?from=larder"
    assert told.headers["title"] == f"Larder larder: {OFFLINE}"
    assert told.headers["click"].startswith(f"{appliance.address}/alerts/")
    assert "bay 4" in told.text
    assert "bring it online again" in told.text

    appliance.run("zpool", "online", "tank", guid)
    alerting.over(appliance, visitor, "pool.offline")
    alerting.each_once(appliance, post, since, "pool.offline")
    both = [f"Larder larder: {OFFLINE}", f"Larder larder: resolved: {OFFLINE}"]
    wait_for("its end", lambda: both[1] in hook.titles(), timeout=120)
    assert [title for title in hook.titles() if OFFLINE in title] == both
