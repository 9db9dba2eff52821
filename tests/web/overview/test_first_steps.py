"""First steps stand on the overview until each is done or dismissed; all is well only where somebody would hear."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.made import dataset, recorded_pool, shared
from tests.web import rows
from tests.web.reading import assert_nothing_inline, text_of
from web.alerts.models import MailSettings, Message, SelfTestPlan
from web.backups import recovery
from web.overview.first_steps import STEPS
from web.overview.models import DismissedStep


@pytest.fixture
def fresh(calm, monkeypatch) -> None:
    """A box without anything, where no disk tests itself."""
    rows.put(pools=[], datasets=[], accounts=[], shares=[], disks=[])
    SelfTestPlan.objects.create(pk=1, short="never", long="never")
    monkeypatch.setattr(recovery, "is_missing", lambda: True)


def steps(web: Any) -> list[str]:
    return [step.key for step in web.get("/").context["steps"]]


def test_fresh_box_shows_every_step_with_a_link(web, fresh):
    assert steps(web) == [step.key for step in STEPS]
    page = assert_nothing_inline(web.get("/"))
    found = {attributes.get("href") for _tag, attributes in page.elements}
    assert {step.link for step in STEPS} <= found
    assert all(web.get(step.link).status_code == 200 for step in STEPS)


def test_each_step_goes_when_it_is_done(web, fresh, monkeypatch):
    rows.put(pools=[recorded_pool()], datasets=[dataset("tank")])
    assert "pool" not in steps(web)
    rows.put(accounts=["anna"])
    assert "user" not in steps(web)
    rows.put(datasets=[dataset("tank"), shared("tank/photos", policy='{"daily": 3}', policy_source="local")])
    assert not {"folder", "snapshots"} & set(steps(web))
    rows.notified()
    assert steps(web) == ["backup", "recovery", "self-tests"]
    monkeypatch.setattr(recovery, "is_missing", lambda: False)
    assert steps(web) == ["backup", "self-tests"]
    rows.put(
        datasets=[dataset("tank"), shared("tank/photos", backup="x", backup_source="local", policy_source="local")]
    )
    assert steps(web) == ["self-tests"]
    SelfTestPlan.objects.update(short="week")
    assert "First steps" not in text_of(web.get("/"))


def test_dismissed_step_stays_away(web, fresh):
    assert web.post("/first-steps/user/dismiss/")["Location"] == "/"
    assert web.post("/first-steps/user/dismiss/").status_code == 302
    assert "user" not in steps(web)
    assert [(row.key, row.by) for row in DismissedStep.objects.all()] == [("user", "admin")]


def test_unknown_step_cannot_be_dismissed(web, fresh):
    assert web.post("/first-steps/nonsense/dismiss/").status_code == 404
    assert not DismissedStep.objects.exists()


def headline(web: Any) -> str:
    return str(web.get("/").context["attention"].headline)


def test_all_is_well_only_where_somebody_would_hear_of_a_failure(web, calm):
    rows.recorded_box()
    assert headline(web) == "Nothing is wrong now, but nobody would hear of a failure."
    rows.notified()
    assert headline(web) == "All is well."
    Message.objects.update(state=Message.State.GIVEN_UP)  # the latest test did not arrive
    assert headline(web) != "All is well."
    rows.notified("webhook")
    assert headline(web) == "All is well."


def test_test_of_a_way_that_was_removed_does_not_count(web, calm):
    rows.recorded_box()
    rows.notified()
    MailSettings.objects.update(host="")
    assert headline(web) != "All is well."
