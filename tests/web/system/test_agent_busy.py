"""Pages that wait for the agent: two at a time, and the others stay quick."""

from __future__ import annotations

import threading

import msgspec
import pytest

from appliance import agent_client
from appliance.disks import probe
from appliance.errors import Failed
from appliance.message import plain_text
from appliance.operation import checked_plan
from appliance.pools.create import CreatePool
from tests.unit.made import box, disk, path_of
from tests.web import rows
from tests.web.snapshots.test_snapshots import fill
from web import agent
from web.__main__ import THREADS
from web.inventory import store
from web.inventory.models import DiskRow


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(agent, "SECONDS_FOR_A_TURN", 0.01)


@pytest.fixture
def waiting(monkeypatch):
    """Two threads wait for an agent that does not answer until the test lets it."""
    answered, asked = threading.Event(), threading.Semaphore(0)

    def last(request, *, silence):
        asked.release()
        answered.wait(60)
        return {"facts": {}}

    monkeypatch.setattr(agent_client, "send_request", last)
    threads = [
        threading.Thread(target=agent.last, args=({"verb": "read-versions"},), kwargs={"silence": 1}) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
        assert asked.acquire(timeout=60)
    yield
    answered.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_pages_that_wait_leave_threads_for_others():
    assert THREADS - agent.AT_ONCE >= 2  # the turns are counted in the one process that serves pages


def test_third_page_that_asks_the_agent_is_told_to_try_again(web, calm, waiting):
    (dataset,) = fill(3)
    page = web.get(f"/snapshots/of/{dataset.guid}/space/")
    assert page.status_code == 503
    assert page["Retry-After"] == page["Refresh"] == str(agent.SECONDS_TO_RETRY)
    assert "This page tries again" in page.content.decode()


def test_form_that_got_no_turn_is_not_sent_again_by_itself(web, calm, waiting):
    rows.put(disks=(disk(1),))
    row = DiskRow.objects.get()
    page = web.post(f"/disks/{row.pk}/locate/")
    assert page.status_code == 503
    assert "Refresh" not in page
    assert "Go back and try again" in page.content.decode()


def test_page_without_the_agent_answers_while_two_wait(web, calm, waiting):
    assert web.get("/").status_code == 200


def test_turn_is_given_back_after_a_failure(monkeypatch):
    def fail(_request, *, silence):
        raise Failed("Larder's agent does not answer")

    monkeypatch.setattr(agent_client, "send_request", fail)
    for _ in range(agent.AT_ONCE + 1):
        with pytest.raises(Failed):
            agent.last({"verb": "read-versions"}, silence=1)


# What the agent reads on disks that look empty


def create() -> CreatePool:
    return CreatePool(name="tank", layout="mirror", groups=((path_of(1), path_of(2)),))


def test_review_shows_what_the_agent_reads_on_an_empty_looking_disk(monkeypatch):
    asked = []

    def last(request, *, silence):
        asked.append(request)
        return {"facts": {path_of(1): msgspec.to_builtins(probe.UNKNOWN, enc_hook=plain_text)}}

    monkeypatch.setattr(agent_client, "send_request", last)
    monkeypatch.setattr(store, "facts", lambda *_odd: box(disk(1), disk(2)))
    plan = checked_plan(create(), store.facts_for(create()))
    assert asked == [{"verb": "read-content", "disks": [path_of(1), path_of(2)]}]
    assert plan.type_to_confirm == "tank"
    # The agent reads again under the locks, and comes to the same plan.
    monkeypatch.setattr(probe, "inspect_disk", lambda found: probe.UNKNOWN if found.path == path_of(1) else None)
    facts = box(disk(1), disk(2))
    assert (
        checked_plan(create(), probe.with_uses(facts, probe.probe_disks(facts, create().disks_taken()))).digest()
        == plan.digest()
    )


@pytest.mark.parametrize("answer", [Failed("no"), {"facts": {"x": 5}}, {"facts": None}])
def test_review_goes_by_the_inventory_where_the_agent_does_not_answer(monkeypatch, answer):
    def last(_request, *, silence):
        if isinstance(answer, Failed):
            raise answer
        return answer

    monkeypatch.setattr(agent_client, "send_request", last)
    monkeypatch.setattr(store, "facts", lambda *_odd: box(disk(1), disk(2)))
    assert checked_plan(create(), store.facts_for(create())).type_to_confirm == ""
