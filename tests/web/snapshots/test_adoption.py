"""Automatic snapshots without a record: found, reviewed, and recorded only as they were shown."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.facts.datasets import Dataset, Snapshot
from appliance.snapshots.policy import Policy
from appliance.snapshots.set_policy import SetSnapshotPolicy
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.snapshots.test_snapshots import ready, run_for, settled, snap
from web.inventory.dataset_models import DatasetRow
from web.snapshots import adoption
from web.snapshots.models import MadeSnapshot, PolicyRun
from workers import collect_snapshots, snapshot_policies, unrecorded_snapshots

BUTTON = "Let this schedule delete them when they are due"
HOURLY2 = SetSnapshotPolicy(dataset="x", policy=Policy(hourly=2)).property_value


def strange(dataset: Dataset, number: int, *, grain: str = "hourly", **changes: Any) -> Snapshot:
    """What a schedule of another box took that many hours ago."""
    created = timezone.now() - timedelta(hours=number)
    name = f"{dataset.name}@{snapshot_names.name_for(grain, created)}"
    made = snap(dataset.name, 1000 - number, name=name, created=created, run=str(uuid.uuid4()))
    return replace(made, **changes)


@pytest.fixture
def folder(calm, zfs) -> Dataset:
    """A folder that keeps two hourly ones, with five of another box and one that its own schedule took."""
    found = settled("tank/a", policy=HOURLY2, policy_source="local")
    ready(found)
    own = run_for(found, strange(found, 1))
    zfs.there["tank/a"] = [*(strange(found, number) for number in range(6, 1, -1)), *own]
    collect_snapshots.update_snapshots([found])
    return found


def url_of(dataset: Dataset) -> str:
    return f"/snapshots/of/{dataset.guid}/policy/adopt/"


def recorded() -> list[str]:
    return sorted(MadeSnapshot.objects.values_list("guid", flat=True))


def count_of(*found: Snapshot, dataset: Dataset, zfs) -> int:
    ready(dataset)
    zfs.there[dataset.name] = list(found)
    collect_snapshots.update_snapshots([dataset])
    key = str(dataset.guid)
    return adoption.count_unrecorded([key]).get(key, 0)


def test_what_another_box_took_is_counted_and_left_alone(web, folder):
    text = text_of(web.get(f"/snapshots/of/{folder.guid}/"))
    assert "5 automatic snapshots here were taken by another Larder box" in text
    assert "The schedule leaves them alone." in text
    assert BUTTON in text
    assert BUTTON in text_of(web.get(f"/snapshots/of/{folder.guid}/policy/"))
    assert "5 not recorded here" in text_of(web.get("/snapshots/policies/"))
    assert snapshot_policies.prune_snapshots(snapshot_policies.datasets_with_policies()["tank"]) is None


def test_an_odd_folder_leaves_the_schedules_of_others(web, folder):
    DatasetRow.objects.create(key="9", name="tank/odd", pool="tank", policy_source="local", facts='"policy":"{')
    ((found, _policy),) = snapshot_policies.datasets_with_policies()["tank"]
    assert found.name == folder.name


@pytest.mark.parametrize(
    "changes",
    [
        {"run": ""},
        {"run": "mine"},
        {"holds": 1},
        {"clones": ("tank/copy",)},
        {"name": "tank/a@larder-manual-2026.11.01-00.00.00"},
        {"name": "tank/a@larder-before-2026.11.01-00.00.00"},
        {"name": "tank/a@larder-backup-2026.11.01-00.00.00"},
        {"name": "tank/a@larder-import-2026.11.01-00.00.00"},
        {"name": "tank/a@larder-yearly-2026.11.01-00.00.00"},
        {"name": "tank/a@larder-hourly-2026.13.01-00.00.00"},
        {"name": "tank/a@larder-hourly-2026.11.01-00.00.00-kept"},
        {"name": "tank/a@my-larder-hourly-2026.11.01-00.00.00"},
    ],
    ids=str,
)
def test_only_marked_free_snapshots_of_a_schedule_are_offered(zfs, changes):
    one = settled("tank/a", policy=HOURLY2, policy_source="local")
    assert count_of(strange(one, 3), strange(one, 2, **changes), dataset=one, zfs=zfs) == 1


def test_snapshot_of_a_run_of_this_box_is_never_offered(zfs):
    """Until the collector has recorded it with all its grains, and also where it was renamed."""
    one = settled("tank/a", policy=HOURLY2, policy_source="local")
    own = run_for(one, strange(one, 2), strange(one, 3))
    assert count_of(own[0], replace(own[1], name=strange(one, 9).name), dataset=one, zfs=zfs) == 0
    MadeSnapshot.objects.all().delete()
    assert adoption.count_unrecorded([str(one.guid)]) == {}
    PolicyRun.objects.all().delete()  # after a month, or with the settings
    assert adoption.count_unrecorded([str(one.guid)]) == {str(one.guid): 2}


def test_review_says_what_goes_and_records_exactly_that(web, folder, agent):
    page = web.get(url_of(folder))
    text = text_of(page)
    assert "5 automatic snapshots were taken by another Larder box" in text
    assert "4 snapshots will be destroyed" in text  # of six hourly ones two stay
    assert "Space freed:" in text
    assert len(recorded()) == 1  # looking changes nothing
    form = Page(page).form(of="shown")
    answer = web.post(url_of(folder), form.data, follow=True)
    assert "The schedule now deletes 5 more snapshots when they are due." in text_of(answer)
    assert BUTTON not in text_of(answer)
    assert len(recorded()) == 6
    assert set(MadeSnapshot.objects.values_list("grains", flat=True)) == {"hourly"}
    job = snapshot_policies.prune_snapshots(snapshot_policies.datasets_with_policies()["tank"])
    assert job
    assert [name for name, _guid in json.loads(job.operation)["snapshots"]] == [
        row.name for row in page.context["going"]
    ]
    # Sent twice, it has one effect.
    assert "has a record of every automatic snapshot" in text_of(web.post(url_of(folder), form.data))
    assert len(recorded()) == 6


@pytest.mark.parametrize("change", ["another", "policy", "held"])
def test_what_differs_from_the_review_is_shown_again(web, folder, zfs, agent, change):
    data = Page(web.get(url_of(folder))).form(of="shown").data
    there = zfs.there["tank/a"]
    if change == "another":
        there.insert(0, strange(folder, 9))
    elif change == "held":
        there[0] = replace(there[0], holds=1)
    else:
        text = SetSnapshotPolicy(dataset="x", policy=Policy(hourly=1)).property_value
        rows.put(datasets=[replace(folder, policy=text)])
    collect_snapshots.doubt_snapshots(["tank/a"])
    collect_snapshots.update_snapshots([folder])
    answer = web.post(url_of(folder), data)
    assert answer.status_code == 409
    assert "Nothing was done" in text_of(answer)
    assert len(recorded()) == 1


def test_nothing_is_recorded_without_what_the_review_showed(web, folder, agent):
    for data in ({}, {"shown": ""}, {"shown": "0" * 64}):
        assert web.post(url_of(folder), data).status_code == 409
    assert len(recorded()) == 1


def test_many_that_go_take_the_name(web, folder, zfs, agent):
    zfs.there["tank/a"] = [strange(folder, number) for number in range(30, 1, -1)] + zfs.there["tank/a"][-1:]
    collect_snapshots.doubt_snapshots(["tank/a"])
    collect_snapshots.update_snapshots([folder])
    data = Page(web.get(url_of(folder))).form(of="shown").data
    for typed in ("", "tank"):
        answer = web.post(url_of(folder), {**data, "typed": typed})
        assert answer.status_code == 400
        assert "Type tank/a exactly" in text_of(answer)
    assert len(recorded()) == 1
    assert web.post(url_of(folder), {**data, "typed": "tank/a"}).status_code == 302
    assert len(recorded()) == 30


def test_schedule_covers_followers_but_no_copy_and_no_own_schedule(web, calm, zfs, agent):
    top = settled("tank/a", policy=HOURLY2, policy_source="local")
    inherited = {"policy": HOURLY2, "policy_source": "inherited", "policy_from": "tank/a"}
    below, copy = settled("tank/a/b", **inherited), settled("tank/a/copy", copy_of='{"guid":1}', **inherited)
    own = settled("tank/a/own", policy=HOURLY2, policy_source="local")
    every = [top, below, copy, own]
    ready(*every)
    zfs.there = {one.name: [strange(one, number) for number in (3, 2)] for one in every}
    collect_snapshots.update_snapshots(every)
    page = web.get(url_of(top))
    assert sorted({row.dataset for row in page.context["plan"].rows}) == ["tank/a", "tank/a/b"]
    assert "No snapshots will be destroyed" in text_of(page)
    assert web.post(url_of(top), Page(page).form(of="shown").data).status_code == 302
    assert set(MadeSnapshot.objects.values_list("dataset_key", flat=True)) == {str(top.guid), str(below.guid)}
    # A copy and a folder without a schedule are told, and have nothing to confirm.
    text = text_of(web.get(f"/snapshots/of/{copy.guid}/"))
    assert "No schedule is set here" in text
    assert BUTTON not in text
    assert web.get(url_of(copy)).context["plan"].rows == []
    web.post(url_of(copy), {"shown": web.get(url_of(copy)).context["plan"].fingerprint})
    assert MadeSnapshot.objects.count() == 4


def test_agent_s_slots_are_in_the_number(web, calm, zfs, agent):
    """Two snapshots in one hour fill one slot at the agent, so it destroys one less than the ledger gives up."""
    one = settled("tank/a", policy=HOURLY2, policy_source="local")
    ready(one)
    hour = timezone.now().replace(minute=10, second=0, microsecond=0) - timedelta(hours=3)
    moments = [hour - timedelta(hours=1), hour, hour + timedelta(minutes=20), hour + timedelta(minutes=40)]
    found = [
        snap(
            "tank/a", number, created=at, run=str(uuid.uuid4()), name=f"tank/a@{snapshot_names.name_for('hourly', at)}"
        )
        for number, at in enumerate(moments)
    ]
    zfs.there["tank/a"] = found
    collect_snapshots.update_snapshots([one])
    plan = adoption.plan_adoption([one], timezone.now())
    assert len(plan.rows) == 4
    assert plan.going == []


def test_one_notice_for_all_folders_until_they_are_recorded(web, folder, agent):
    watch = unrecorded_snapshots.UnrecordedSnapshots(seconds=0)
    (fault,) = watch.update_faults()
    assert fault.kind == "policy.unrecorded"
    assert fault.detail.startswith("5 in tank/a: taken by another Larder box")
    web.post(url_of(folder), Page(web.get(url_of(folder))).form(of="shown").data)
    assert list(watch.update_faults()) == []
