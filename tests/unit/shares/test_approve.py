from __future__ import annotations

import pytest

from appliance.errors import Failed
from appliance.facts.box import Pool
from appliance.facts.sharing import Share
from appliance.operation import checked_plan
from appliance.shares import approved, publish
from appliance.shares.approve import ApproveShares, offered_shares
from appliance.shares.settings import ShareSetting, Smb
from appliance.zfs import status
from tests.reasons import codes
from tests.unit.made import ANNA, box, dataset, shared
from tests.unit.pools.test_create import Working

POOL = Pool("tank", 7, "ONLINE")
ACCEPT = ApproveShares(pool="tank", guid=7)
THREE = tuple(shared(f"tank/{name}", share_source="received") for name in ("films", "music", "photos"))


def facts(*datasets, **changes):
    return box(pools=(POOL,), datasets=datasets or THREE, accounts=(ANNA,), **changes)


@pytest.fixture
def published(monkeypatch, folders):
    """What was to be served, instead of serving it."""
    seen: list[list[str]] = []
    monkeypatch.setattr(approved, "FILE", folders / "agreed")
    monkeypatch.setattr(status, "read_datasets", lambda: THREE)
    monkeypatch.setattr("appliance.system.accounts.read_accounts", lambda: (ANNA,))
    monkeypatch.setattr(
        publish, "publish_shares", lambda found, _protocols, **_more: seen.append([one.name for one in found.datasets])
    )
    return seen


def test_three_shares_are_agreed_to_at_once(published):
    plan = checked_plan(ACCEPT, facts())
    assert plan.details["tank/films"] == "SMB as films for anna"
    plan.steps[0].run(Working())
    assert published == [[one.name for one in THREE]]
    assert approved.read_approved() == {one.guid for one in THREE}


def test_what_is_served_not_there_or_no_setting_is_not_offered():
    served = Share("smb", "films", "/tank/films")
    found = (*THREE[:1], shared("tank/music", mounted=False), shared("tank/x", share="{"), shared("pond/y"))
    assert offered_shares(facts(*found, shares=(served,)), "tank") == []
    assert codes(ACCEPT.check(facts(*found, shares=(served,)))) == ["shares-all-on"]


def test_a_hostile_setting_or_place_is_not_offered():
    evil = ShareSetting(smb=Smb(name="x")).text().replace('"x"', '"x\\nroot preexec = reboot"')
    assert offered_shares(facts(shared("tank/a", share=evil), shared("tank/b", mountpoint="/etc")), "tank") == []


def test_a_name_that_is_used_here_or_twice_is_refused():
    twice = shared("tank/other", share=ShareSetting(smb=Smb(name="FILMS", write=("anna",))).text())
    assert any("FILMS" in reason.message.arguments.values() for reason in ACCEPT.check(facts(*THREE, twice)))
    assert any(
        "pond/films" in reason.message.arguments.values()
        for reason in ACCEPT.check(facts(*THREE, shared("pond/films")))
    )


def test_guests_and_people_that_are_none_here_are_told():
    found = dataset(
        share=ShareSetting(smb=Smb(name="p", write=("berta",), guest="read")).text(), share_source="received"
    )
    warnings = " ".join(checked_plan(ACCEPT, facts(found)).warnings)
    assert "no berta" in warnings
    assert "without a password" in warnings


def test_a_setting_that_changed_after_it_was_shown_is_another_plan_and_not_served(published, monkeypatch):
    changed = shared(
        "tank/films", share=ShareSetting(smb=Smb(name="films", guest="write")).text(), share_source="received"
    )
    plan = checked_plan(ACCEPT, facts())
    assert plan.digest() != checked_plan(ACCEPT, facts(changed, *THREE[1:])).digest()
    monkeypatch.setattr(status, "read_datasets", lambda: (changed, *THREE[1:]))
    with pytest.raises(Failed, match="changed meanwhile"):
        plan.steps[0].run(Working())
    assert published == []
    assert approved.read_approved() == frozenset()


def test_where_serving_fails_nothing_stays_agreed_to(published, monkeypatch):
    def fail(_facts, _protocols, **_more):
        raise Failed("Samba does not answer")

    monkeypatch.setattr(publish, "publish_shares", fail)
    with pytest.raises(Failed):
        checked_plan(ACCEPT, facts()).steps[0].run(Working())
    assert approved.read_approved() == frozenset()


def test_another_pool_of_that_name_is_not_meant():
    assert codes(ApproveShares(pool="tank", guid=8).check(facts())) == ["pool-missing"]
