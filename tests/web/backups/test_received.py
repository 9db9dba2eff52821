"""Copies that another Larder brings: what the pages say of them, what is pruned, and the alerts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from msgspec.structs import replace

from appliance import agent_client, schedule
from appliance.agent.registry import decode_operation
from appliance.alerts import rules
from appliance.alerts.fault import AlertInput, Space
from appliance.backups.pairing.receive_copies import ReceiveCopies
from appliance.backups.pairing.set_retention import SetReceivedRetention
from appliance.facts.box import Pool
from appliance.facts.datasets import Snapshot
from appliance.facts.kept_copies import Keep
from appliance.facts.receiver import Receiver
from appliance.snapshot_names import format_moment
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.backups.test_pairing import COPY, LIST, MARK, PAGE, PAIRED, ROOT
from tests.web.reading import Page
from web.inventory import store
from web.inventory.dataset_models import SnapshotReading, SnapshotRow
from web.jobs.models import Job
from workers import received_copies

NOW = datetime(2026, 11, 24, 12, 30, tzinfo=UTC)
RETENTION = f"{PAGE}retention/"
TWO_DAYS = Keep(hourly=0, daily=2, weekly=0, monthly=0)
KEPT = replace(PAIRED, keep=TWO_DAYS, seen=NOW)
FORM = {"hourly": 1, "daily": 2, "weekly": 3, "monthly": 4, "days": 9}
OTHER = dataset("tank/backups/attic2/photos", guid=79, copy_of='{"guid":5,"raw":false}')


@pytest.fixture(autouse=True)
def in_use(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What the agent says must stay for now."""
    said: dict[str, list[Any]] = {"copies": [], "needed": []}
    asked = {"verb": "read-copies-in-use", "receiver": KEPT.id}
    monkeypatch.setattr(
        agent_client, "send_request", lambda request, **_more: {"facts": said if request == asked else {}}
    )
    return said


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(schedule, "box_zone", lambda: UTC)
    with time_machine.travel(NOW, tick=False):
        yield


def box(receiver: Receiver = KEPT, *, pool: Pool | None = None, root: Any = ROOT, copy: Any = COPY) -> None:
    found = [dataset("tank", guid=1), dataset("tank/backups", guid=2, **MARK), root, copy, OTHER]
    rows.put(
        pools=[pool or rows.pool_of("tank", 1000, disk(1), disk(2))], datasets=found, disks=[], accounts=[], shares=[]
    )
    rows.put_receivers(receiver)
    store.checked("snapshots", changed=True)


def daily(count: int, name: str = COPY.name, guid: int = COPY.guid, short: str = "", **changes: Any) -> list[Snapshot]:
    """Snapshots of the last days, the oldest first."""
    made = []
    for number in range(count):
        at = timezone.now() - timedelta(days=count - number)
        called = f"{name}@{short or 'larder-backup'}-{format_moment(at)}"
        one = Snapshot(called, guid * 100 + number, 10 + number, at, **changes)
        SnapshotRow.objects.create(
            dataset_key=str(guid),
            dataset=name,
            short=one.short,
            guid=str(one.guid),
            txg=one.txg,
            created=at,
            holds=one.holds,
        )
        made.append(one)
    SnapshotReading.objects.update_or_create(
        dataset_key=str(guid), defaults={"dataset": name, "at": timezone.now(), "count": count}
    )
    return made


def chosen() -> list[str]:
    """What the jobs that were started are to destroy."""
    received_copies.prune_received()
    return [
        one[0] for job in Job.objects.filter(kind="prune-received") for one in json.loads(job.operation)["snapshots"]
    ]


# --- pages ----------------------------------------------------------------------------------------------------------
def test_pages_say_what_a_box_has_here(web):
    box(replace(KEPT, seen=NOW - timedelta(hours=3)))
    daily(4)
    page = Page(web.get(PAGE)).text
    for words in (
        "1 folder",
        "4 snapshots",
        "0 hourly, 2 daily",
        "Last connected",
        "when it has not connected for 7 days",
    ):
        assert words in page
    listed = Page(web.get(LIST)).text
    assert "Newest copy" in listed and "paired" in listed


def test_pairing_of_before_keeps_every_copy_and_says_so(web):
    box(replace(PAIRED, seen=NOW))
    daily(9)
    assert "every copy" in Page(web.get(PAGE)).text
    assert chosen() == []
    assert web.get(RETENTION).context["form"].initial["everything"] is True


def test_form_shows_what_is_set_and_leads_to_a_review(web):
    box()
    assert web.get(RETENTION).context["form"].initial["daily"] == 2
    response = web.post(RETENTION, FORM)
    made = decode_operation(response.context["operation_json"])
    assert made == SetReceivedRetention(receiver=KEPT.id, keep=Keep(hourly=1, daily=2, weekly=3, monthly=4), days=9)
    assert 'name="password"' in response.content.decode()  # the alert comes later than before
    response = web.post(RETENTION, {**FORM, "everything": "on", "days": 7})
    made = decode_operation(response.context["operation_json"])
    assert made == SetReceivedRetention(receiver=KEPT.id, keep=None, days=7)
    assert 'name="password"' not in response.content.decode()


@pytest.mark.parametrize(
    "wrong", [{"daily": -1}, {"daily": 501}, {"hourly": ""}, {"days": 367}, {"days": ""}, {"days": "x"}]
)
def test_what_cannot_be_kept_is_refused_with_its_field(web, wrong):
    box()
    response = web.post(RETENTION, {**FORM, **wrong})
    assert response.status_code == 400 and set(wrong) == set(response.context["form"].errors)


def test_new_pairing_is_asked_for_its_retention_with_the_usual_values(web):
    box()
    fields = web.get(f"{LIST}new/").context["form"].fields
    assert [fields[grain].initial for grain in ("hourly", "daily", "weekly", "monthly")] == [24, 14, 8, 12]
    response = web.post(f"{LIST}new/", {"pool": "tank", "name": "cellar", "limit": "", **FORM})
    made = decode_operation(response.context["operation_json"])
    assert isinstance(made, ReceiveCopies)
    assert (made.keep, made.days) == (Keep(hourly=1, daily=2, weekly=3, monthly=4), 9)


# --- what is pruned -------------------------------------------------------------------------------------------------
def test_snapshots_beyond_the_retention_are_asked_for_once():
    box()
    found = daily(5)
    daily(5, OTHER.name, OTHER.guid)  # of another pairing, whose folder begins with the same letters
    assert chosen() == [one.name for one in found[:3]]
    assert chosen() == [one.name for one in found[:3]]
    (job,) = Job.objects.all()
    assert job.subject == ROOT.name


def test_nothing_is_started_while_every_copy_to_be_pruned_is_in_use(in_use):
    box()
    found = daily(5)
    in_use["copies"] = [COPY.name]
    assert chosen() == []  # a first copy may take days to arrive
    in_use["copies"] = []
    assert chosen() == [one.name for one in found[:3]]


def test_copies_that_are_free_are_pruned_beside_one_in_use(in_use):
    second = replace(COPY, name=f"{ROOT.name}/second", guid=81)
    box()
    rows.put(datasets=[dataset("tank", guid=1), dataset("tank/backups", guid=2, **MARK), ROOT, COPY, second])
    daily(5)
    free = daily(5, second.name, second.guid)
    in_use["copies"] = [COPY.name]
    assert chosen() == [one.name for one in free[:3]]


def test_nothing_is_started_for_what_a_half_received_copy_goes_on_from(in_use):
    box()
    found = daily(3)
    in_use["needed"] = [found[0].guid]
    assert chosen() == []
    in_use["needed"] = [found[1].guid]
    assert chosen() == [found[0].name]


@pytest.mark.parametrize(
    "changes",
    [
        {"copy": replace(COPY, copy_of="")},
        {"copy": replace(COPY, copy_of='{"guid":0,"raw":false}')},
        {"root": replace(ROOT, guid=70)},
        {"pool": replace(rows.pool_of("tank", 1000, disk(1), disk(2)), state="SUSPENDED")},
        {"receiver": replace(KEPT, keep=None)},
        {"receiver": replace(KEPT, keep=Keep())},
    ],
    ids=["no-copy", "set-aside", "other-folder", "stopped-pool", "everything", "enough"],
)
def test_nothing_else_is_asked_for(changes):
    box(**changes)
    daily(5)
    assert chosen() == []


@pytest.mark.parametrize("changes", [{"holds": 1}, {"short": "larder-daily"}, {"short": "by-hand"}])
def test_held_and_foreign_snapshots_are_not_asked_for(changes):
    box()
    daily(5, **changes)
    assert chosen() == []


def test_nothing_is_asked_for_before_everything_was_read():
    box()
    daily(5)
    store.checked("receivers", changed=False, error="unreadable")
    assert chosen() == []


def test_prune_that_failed_rests():
    box()
    daily(5)
    chosen()
    Job.objects.update(state=Job.State.FAILED)
    received_copies.prune_received()
    assert Job.objects.count() == 1
    Job.objects.update(created=NOW - timedelta(minutes=20))
    received_copies.prune_received()
    assert Job.objects.count() == 2


# --- alerts ---------------------------------------------------------------------------------------------------------
def kinds() -> list[str]:
    return [fault.kind for fault in received_copies.received_faults(timezone.now())]


@pytest.mark.parametrize(
    ("receiver", "copied", "silent"),
    [
        (replace(KEPT, seen=NOW - timedelta(days=8)), False, True),
        (replace(KEPT, seen=NOW - timedelta(days=6)), False, False),
        (replace(KEPT, seen=NOW - timedelta(days=8)), True, False),
        (replace(KEPT, seen=NOW - timedelta(days=300), days=0), False, False),
        (replace(KEPT, seen=None), False, True),
        (replace(KEPT, seen=None, public_key="", paired=None), False, False),
    ],
)
def test_box_that_stays_away_is_an_alert(web, receiver, copied, silent):
    box(receiver)
    if copied:
        daily(2)
    assert kinds() == ["received.silent"] * silent
    assert ("not connected lately" in Page(web.get(LIST)).text) is silent
    assert ("It has not connected for more than 7 days" in Page(web.get(PAGE)).text) is silent


def test_limit_that_is_nearly_reached_is_an_alert(web):
    box(root=replace(ROOT, used=91 * 2**30, available=9 * 2**30))
    (fault,) = received_copies.received_faults(timezone.now())
    assert fault.kind == "received.full" and "91 %" in fault.summary
    assert "91 % of their limit" in Page(web.get(PAGE)).text
    box(root=replace(ROOT, used=89 * 2**30, available=11 * 2**30))
    assert kinds() == []


def test_full_pool_says_whose_copies_stop():
    box()
    spaces = received_copies.with_senders([Space(1000, "tank", 91, 5), Space(2000, "safe", 91, 5)])
    first, second = rules.find_faults(AlertInput(now=NOW, spaces=spaces))[0]
    assert "Copies from cellar are received here, and stop when it is full" in first.detail
    assert "received here" not in second.detail
