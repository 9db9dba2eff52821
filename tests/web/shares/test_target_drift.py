"""iSCSI targets that were changed by hand: on their pages, and when the agent is asked for them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import msgspec
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from appliance import agent_client
from appliance.alerts.sources import SOURCES
from appliance.errors import Failed
from appliance.facts.sharing import Share
from appliance.shares.drift.targets import OverwriteTarget
from appliance.shares.iscsi import configfs
from appliance.shares.iscsi.configfs import Tree
from appliance.shares.iscsi.differences import TargetDifference
from appliance.shares.iscsi.divergence import TargetEdit, key_of
from appliance.shares.iscsi.part import PREFIX
from tests.unit.made import dataset
from tests.web import rows
from tests.web.reading import assert_nothing_inline, text_of
from web.inventory.models import Source, TargetEditRow
from web.jobs.models import Job
from workers import collect_targets, collectors

IQN = f"{PREFIX}disk1"
VOLUME = dataset(
    "tank/disk1",
    kind="volume",
    mounted=False,
    mountpoint="",
    volsize=2**30,
    share=json.dumps({"iscsi": {"name": "disk1"}}),
    share_source="local",
)
EDIT = TargetEdit(
    key_of(IQN),
    IQN,
    "ab" * 32,
    "tank/disk1",
    (TargetDifference("chap-off"), TargetDifference("portal-added", "10.0.0.1:3261")),
)
BY_HAND = TargetEdit(
    key_of(f"{PREFIX}<b>own"), f"{PREFIX}<b>own", "cd" * 32, differences=(TargetDifference("unasked"),)
)
ODD = TargetEdit("0badcafe0badcafe", f"{PREFIX}odd one", "ef" * 32, differences=(TargetDifference("unasked"),))


def keep(*found: TargetEdit) -> None:
    TargetEditRow.objects.all().delete()
    for one in found:
        TargetEditRow.objects.create(key=one.key, name=one.name, facts=msgspec.json.encode(one).decode())


@pytest.fixture
def changed(calm) -> None:
    share = Share("iscsi", IQN, "/dev/zvol/tank/disk1")
    rows.put(pools=[], datasets=[dataset("tank"), VOLUME], accounts=[], disks=[], shares=[share])
    keep(EDIT, BY_HAND, ODD)


def test_the_page_tells_each_difference_and_offers_to_put_it_back(web, changed):
    page = web.get("/shares/by-hand/")
    assert_nothing_inline(page)
    text = text_of(page)
    assert "The kernel serves tank/disk1 over iSCSI as this target. Somebody has changed it on the box." in text
    assert "CHAP was switched off: no secret is asked for." in text
    assert "It can also be reached at 10.0.0.1:3261." in text
    assert "Larder serves no volume under this name." in text
    assert "&lt;b&gt;own" in page.content.decode()
    assert "No manual changes" not in text
    links = [f"/shares/by-hand/target/{one.key}/overwrite/" in page.content.decode() for one in (EDIT, BY_HAND, ODD)]
    assert links == [True, True, False]
    assert web.get(f"/shares/by-hand/target/{ODD.key}/overwrite/").status_code == 404


def test_the_volumes_page_tells_it_too(web, changed):
    page = web.get(f"/folders/{VOLUME.guid}/")
    assert_nothing_inline(page)
    assert "Changed by hand. CHAP was switched off" in text_of(page)
    assert f"/shares/by-hand/target/{EDIT.key}/overwrite/" in page.content.decode()
    keep()
    assert "Changed by hand" not in text_of(web.get(f"/folders/{VOLUME.guid}/"))


def test_putting_it_back_is_reviewed_and_names_the_change_that_was_seen(web, changed):
    page = web.get(f"/shares/by-hand/target/{EDIT.key}/overwrite/")
    assert "tank/disk1 is served again as its settings say" in text_of(page)
    sent = {name: page.context[name] for name in ("digest", "job", "back")} | {
        "operation": page.context["operation_json"]
    }
    assert web.post("/jobs/confirm/", sent)["Location"] == f"/jobs/{sent['job']}/"
    made = json.loads(Job.objects.get().operation)
    assert made == {"kind": "overwrite-target", "target": IQN, "seen": EDIT.seen}
    assert OverwriteTarget(target=IQN, seen=EDIT.seen).title in text_of(web.get(f"/jobs/{sent['job']}/"))


def test_a_change_that_is_gone_leads_back_to_the_list(web, changed):
    keep()
    assert web.get(f"/shares/by-hand/target/{EDIT.key}/overwrite/")["Location"] == "/shares/by-hand/"


def test_the_page_costs_the_same_with_many_targets(web, changed):
    counts = []
    for many in (1, 30):
        keep(*(replace(EDIT, key=f"{at:016x}", name=f"{PREFIX}d{at}") for at in range(many)))
        web.get("/shares/by-hand/")
        with CaptureQueriesContext(connections["inventory"]) as seen:
            web.get("/shares/by-hand/")
        counts.append(len(seen.captured_queries))
    assert counts[0] == counts[1]


# --- when the agent is asked -------------------------------------------------------------------------------------
class Agent:
    """Answers with what a test gives it, and counts how often it was asked."""

    def __init__(self) -> None:
        self.tree, self.asked, self.now = Tree(), 0, 1000.0
        self.edits: list[TargetEdit] = []

    def answer(self, request: dict[str, object], **_more: object) -> dict[str, object]:
        assert request == {"verb": "read-target-edits"}
        self.asked += 1
        return {"facts": msgspec.to_builtins(self.edits)}

    def read(self) -> list[str]:
        collectors.update_source("targets", collect_targets.store_targets)
        return sorted(row.fact.name for row in TargetEditRow.objects.all())


@pytest.fixture
def agent(calm, monkeypatch) -> Agent:
    rows.put(pools=[], datasets=[dataset("tank")], accounts=[], disks=[], shares=[])
    found = Agent()
    monkeypatch.setattr(agent_client, "send_request", found.answer)
    monkeypatch.setattr(configfs, "read_tree", lambda: found.tree)
    monkeypatch.setattr(collect_targets, "_asked", collect_targets.LastAsked())
    monkeypatch.setattr(collect_targets, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def test_a_box_that_serves_no_volume_never_asks(agent):
    assert agent.read() == []
    agent.now += 10_000
    assert (agent.read(), agent.asked) == ([], 0)


def test_an_odd_row_is_asked_for_again(agent):
    agent.tree = Tree(frozenset({f"iscsi/{IQN}"}), {f"iscsi/{IQN}/tpgt_1/enable": "1"})
    agent.edits = [rows.TARGET_EDIT]
    assert agent.read() == [rows.TARGET_EDIT.name]
    TargetEditRow.objects.update(facts="{}")
    assert (agent.read(), agent.asked) == ([rows.TARGET_EDIT.name], 2)


def test_it_asks_when_something_moves_and_from_time_to_time_for_secrets(agent):
    agent.tree = Tree(frozenset({f"iscsi/{IQN}"}), {f"iscsi/{IQN}/tpgt_1/enable": "1"})
    for seconds, asked in ((0, 1), (10, 1), (299, 2), (60, 2)):
        agent.now += seconds
        agent.read()
        assert agent.asked == asked, seconds
    # Who connects is none of it.
    agent.tree = Tree(agent.tree.folders, {**agent.tree.values, f"iscsi/{IQN}/tpgt_1/dynamic_sessions": "x"})
    agent.read()
    assert agent.asked == 2
    agent.tree = Tree(agent.tree.folders, {f"iscsi/{IQN}/tpgt_1/enable": "0"})
    agent.read()
    assert agent.asked == 3
    rows.put(datasets=[dataset("tank"), VOLUME])
    agent.read()
    assert agent.asked == 4


def test_a_change_is_told_on_every_page_and_looked_at_again_until_it_is_gone(web, agent):
    agent.tree, agent.edits = Tree(frozenset({f"iscsi/{IQN}"})), [EDIT]
    assert agent.read() == [IQN]
    page = web.get("/folders/")
    assert f"{IQN} was changed by hand." in text_of(page)
    assert "changes of that share are refused" in text_of(page)
    assert 'href="/shares/by-hand/"' in page.content.decode()
    agent.now += 31
    agent.edits = []
    assert (agent.read(), agent.asked) == ([], 2)
    assert "was changed by hand" not in text_of(web.get("/folders/"))


def test_what_was_deleted_is_seen_although_the_kernel_has_nothing(agent):
    rows.put(datasets=[dataset("tank"), VOLUME])
    agent.edits = [replace(EDIT, differences=(TargetDifference("gone"),))]
    assert agent.read() == [IQN]
    rows.put(datasets=[dataset("tank")])
    agent.edits = []
    assert agent.read() == []
    agent.now += 10_000
    asked = agent.asked
    assert (agent.read(), agent.asked) == ([], asked)


def test_an_agent_that_does_not_answer_is_a_fault_that_is_told(agent, monkeypatch):
    def fail(*_args: object, **_more: object) -> None:
        raise Failed("Larder's agent does not answer")

    agent.tree, agent.edits = Tree(frozenset({f"iscsi/{IQN}"})), [EDIT]
    agent.read()
    agent.now += 31
    monkeypatch.setattr(agent_client, "send_request", fail)
    assert agent.read() == [IQN], "what was known stays"
    assert "does not answer" in Source.objects.get(name="targets").error
    assert "was changed by hand" in Source.objects.get(name="targets-by-hand").error
    assert "targets" in SOURCES
