"""Pages of snapshots, their collector, and the clock of schedules."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance import schedule, snapshot_names
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Bookmark, Dataset, DatasetDetail, Snapshot
from appliance.formatting import size_text
from appliance.snapshots.policy import Policy
from appliance.snapshots.set_policy import SetSnapshotPolicy
from tests.reasons import codes_on_page
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.system.test_queries import queries
from web.inventory import store
from web.inventory.dataset_models import BookmarkRow, DatasetDetailRow, SnapshotReading, SnapshotRow
from web.inventory.models import PoolRow
from web.jobs.models import Job
from web.snapshots import policy_ledger
from web.snapshots.models import ClockRow, MadeSnapshot, PolicyRun
from workers import collect_snapshots, snapshot_policies
from workers.alerts import missed_schedules

MADE = datetime(2026, 11, 1, tzinfo=UTC)
TEXT = SetSnapshotPolicy(dataset="x", policy=Policy(hourly=2)).property_value


def snap(dataset: str, number: int, **changes: Any) -> Snapshot:
    made = Snapshot(f"{dataset}@s{number:04d}", 2**63 + number, number, MADE + timedelta(minutes=number), used=number)
    return replace(made, **changes)


def automatic(dataset: str, number: int, created: datetime) -> Snapshot:
    """A snapshot as an hourly schedule would have taken and named it."""
    return snap(dataset, number, created=created, name=f"{dataset}@{snapshot_names.name_for('hourly', created)}")


def settled(name: str, **changes: Any) -> Dataset:
    return rows.dataset(name, snapshots_changed=1_700_000_000, **changes)


def fill(count: int, datasets: int = 1) -> list[Dataset]:
    """Made-up rows: so many snapshots on so many folders of tank."""
    found = [settled(f"tank/d{number}") for number in range(datasets)]
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=found)
    SnapshotRow.objects.bulk_create(
        (
            collect_snapshots.row_of(str(found[at % datasets].guid), snap(found[at % datasets].name, at))
            for at in range(count)
        ),
        batch_size=50,
    )
    return found


def test_collector_reads_only_changed_dataset_again(zfs):
    datasets = [settled(f"tank/d{number}") for number in range(5)]
    zfs.there = {one.name: [snap(one.name, number) for number in range(3)] for one in datasets}
    assert collect_snapshots.update_snapshots(datasets)
    assert SnapshotRow.objects.count() == 15
    zfs.asked.clear()
    zfs.asked_for_marks.clear()
    assert not collect_snapshots.update_snapshots(datasets)
    assert zfs.asked == []
    zfs.there["tank/d2"].append(snap("tank/d2", 9))
    datasets[2] = replace(datasets[2], snapshots_changed=1_700_000_100)
    assert collect_snapshots.update_snapshots(datasets)
    assert zfs.asked == ["tank/d2"]
    assert zfs.asked_for_marks == []  # a new snapshot is no new bookmark
    assert SnapshotRow.objects.filter(dataset="tank/d2").count() == 4


def test_collector_ignores_snapshots_of_zfs_diff(zfs):
    one = settled("tank/a")
    own = snap("tank/a", 2, name="tank/a@zfs-diff-4711-00000001000a7f3c", holds=1)
    by_hand = replace(own, guid=5, holds=0)  # of that name, and nothing reads it
    zfs.there = {"tank/a": [snap("tank/a", 1), own, replace(by_hand, name="tank/a@zfs-diff-1-0000000100000000")]}
    collect_snapshots.update_snapshots([one])
    assert [row.short for row in SnapshotRow.objects.order_by("txg")] == ["s0001", "zfs-diff-1-0000000100000000"]
    assert SnapshotReading.objects.get().count == 2


def test_collector_reads_origin_again_when_clone_changes(zfs):
    origin, clone = settled("tank/a"), settled("tank/copy", origin="tank/a@s0001")
    zfs.there = {"tank/a": [snap("tank/a", 1)]}
    collect_snapshots.update_snapshots([origin])
    for datasets, clones in (([origin, clone], ("tank/copy",)), ([origin], ())):
        zfs.asked.clear()
        zfs.there["tank/a"] = [snap("tank/a", 1, clones=clones)]
        collect_snapshots.update_snapshots(datasets)
        assert "tank/a" in zfs.asked
        assert SnapshotRow.objects.get().clones == ",".join(clones)


def test_collector_reads_recently_changed_dataset_again(zfs):
    one = settled("tank/a")
    one = replace(one, snapshots_changed=int(timezone.now().timestamp()))
    collect_snapshots.update_snapshots([one])
    collect_snapshots.update_snapshots([one])
    assert zfs.asked == ["tank/a", "tank/a"]


def test_collector_deletes_rows_of_gone_dataset_and_rereads_old_ones(zfs):
    a, b = settled("tank/a"), settled("tank/b")
    zfs.there = {"tank/a": [snap("tank/a", 1)], "tank/b": [snap("tank/b", 1)]}
    collect_snapshots.update_snapshots([a, b])
    assert collect_snapshots.update_snapshots([a])
    assert {row.dataset for row in SnapshotRow.objects.all()} == {"tank/a"}
    SnapshotReading.objects.update(at=timezone.now() - timedelta(hours=1))
    zfs.asked.clear()
    zfs.there["tank/a"] = [snap("tank/a", 1, holds=1)]
    assert collect_snapshots.update_snapshots([a])
    assert SnapshotRow.objects.get().holds == 1
    collect_snapshots.doubt_snapshots(["tank/a"])
    collect_snapshots.update_snapshots([a])
    assert zfs.asked == ["tank/a", "tank/a"]


def test_paging_has_no_gaps_in_any_order(web, calm):
    fill(250)
    for query in ("", "order=size", "order=name", "begins=s0"):
        seen, url = [], f"/snapshots/?{query}"
        while url:
            page = web.get(url)
            found = page.context["found"]
            seen += [row.pk for row in found.rows]
            url = f"/snapshots/?{query}&after={found.next}" if found.next else ""
        assert len(seen) == len(set(seen)) == 250, query


def test_single_snapshot_is_singular_and_not_counted_in_navigation(web, calm):
    (dataset,) = fill(1)
    SnapshotReading.objects.create(dataset_key=str(dataset.guid), dataset=dataset.name, at=MADE, count=1)
    page = web.get(f"/snapshots/of/{dataset.guid}/").content.decode()
    assert "1 snapshot, which holds" in page
    assert "nav-count" not in page


def test_invalid_address_shows_first_page(web, calm):
    fill(3)
    for after in ("x", "1", "1.x", "." * 50, "1." + "9" * 60, "-1.-1"):
        assert web.get("/snapshots/", {"after": after, "kind": "x", "order": "y"}).status_code == 200


def test_d29_getting_files_back_weighs_more_on_the_list_than_destroying(web, calm):
    """Beside the red button that destroys there is one in the main colour, and it comes first."""
    fill(3)
    page = web.get("/snapshots/").content.decode()
    primary = page.index('class="button button-primary"')
    assert "Restore files" in page[primary : page.index("</a>", primary)]
    assert primary < page.index("button-danger")


def test_list_needs_same_queries_for_thousands(web, calm):
    (dataset,) = fill(10)
    urls = ["/snapshots/", f"/snapshots/of/{dataset.guid}/", "/snapshots/?kind=policy", "/snapshots/?begins=s00"]
    web.get(urls[0])
    small = [len(queries(web, url)) for url in urls]
    SnapshotRow.objects.all().delete()
    fill(5000, 50)
    assert [len(queries(web, url)) for url in urls] == small


@pytest.mark.parametrize("query", ["", "kind=policy", "kind=hand", "kind=held", "order=size", "begins=s00"])
def test_every_list_uses_index(query):
    from django.http import QueryDict

    from web.snapshots import paging

    asked = paging.Asked.from_query(QueryDict(query))
    column = {"": "created", "size": "used", "name": "short"}[asked.order]
    plan = paging.rows_for(asked).order_by(f"-{column}", "-id").explain()
    assert "USE TEMP B-TREE" not in plan, plan
    assert "INDEX" in plan, plan


def test_chosen_snapshots_are_reviewed_before_destroying(web, calm):
    (dataset,) = fill(5)
    keys = [row.pk for row in SnapshotRow.objects.all()[:2]]
    SnapshotRow.objects.filter(pk=keys[0]).update(holds=1)
    page = web.post("/snapshots/destroy/", {"snapshot": keys, "of": dataset.guid})
    text = page.content.decode()
    assert page.status_code == 200
    assert "it is protected" in text
    assert "The snapshot tank/d0@s0001 will be destroyed, of 2 chosen" in text
    assert text.count("Destroy the snapshot tank/d0@s0001") >= 2  # the heading and the button
    assert "Destroy 2 snapshots" not in text.partition("<main")[2]
    assert Job.objects.count() == 0
    page = web.post("/snapshots/destroy/", {"snapshot": ["x", "9" * 30]})
    assert (page.status_code, codes_on_page(page)) == (409, ["snapshot-not-chosen"])


def destroyed_by(page: Any) -> set[str]:
    """The snapshots in the operation of a review page."""
    return {one[0] for one in json.loads(page.context["operation_json"])["snapshots"]}


def test_destroy_all_takes_exactly_filtered_list(web, calm, agent):
    one, other = fill(600, 2)
    assert 'name="every"' in web.get(f"/snapshots/of/{one.guid}/").content.decode()
    page = web.post("/snapshots/destroy/", {"of": one.guid, "every": "", "begins": "s00"})
    assert "50 snapshots will be destroyed" in page.content.decode()
    assert destroyed_by(page) == {f"tank/d0@s{number:04d}" for number in range(0, 100, 2)}
    page = web.post("/snapshots/destroy/", {"of": one.guid, "every": ""})
    assert "300 snapshots will be destroyed" in page.content.decode()
    assert destroyed_by(page) == {f"tank/d0@s{number:04d}" for number in range(0, 600, 2)}
    SnapshotRow.objects.filter(dataset=other.name, short="s0007").update(holds=1)
    page = web.post("/snapshots/destroy/", {"of": other.guid, "every": "", "kind": "held"})
    assert (page.status_code, codes_on_page(page)) == (409, ["snapshots-blocked"])  # held ones stay
    page = web.post("/snapshots/destroy/", {"every": ""})
    assert (page.status_code, codes_on_page(page)) == (409, ["snapshot-not-chosen"])
    assert Job.objects.count() == 0


def test_freed_space_is_exact_for_neighbours_else_minimum(web, calm, agent):
    (dataset,) = fill(30)
    page = web.post("/snapshots/destroy/", {"of": dataset.guid, "every": ""})
    assert agent.asked[-1]["ranges"] == [("tank/d0@s0000", "tank/d0@s0029")]
    assert page.context["plan"].details == {"Space freed": size_text(2**20)}
    # One in between that is held makes two rows of them, and what these share is not told.
    SnapshotRow.objects.filter(short="s0010").update(holds=1)
    page = web.post("/snapshots/destroy/", {"of": dataset.guid, "every": ""})
    assert len(agent.asked[-1]["ranges"]) == 2
    assert page.context["plan"].details["Space freed"].startswith("at least 2.1 MB")
    digest = page.context["digest"]
    agent.silent = True
    page = web.post("/snapshots/destroy/", {"of": dataset.guid, "every": ""})
    assert page.status_code == 200
    assert page.context["plan"].details["Space freed"].startswith("at least 425 B")
    assert page.context["digest"] == digest


def test_snapshot_is_taken_with_note(web, calm):
    (dataset,) = fill(0)
    assert (
        web.post(f"/snapshots/of/{dataset.guid}/take/", {"note": "tidy up", "name": "", "below": "on"}).status_code
        == 302
    )
    operation = json.loads(Job.objects.get().operation)
    assert operation["name"].startswith("larder-manual-20")
    assert (operation["note"], operation["below"]) == ("tidy up", True)
    assert web.post(f"/snapshots/of/{dataset.guid}/take/", {"name": "a b"}).status_code == 400


def test_forms_of_a_volume_speak_of_nothing_below(web, calm):
    folder, volume = settled("tank/a"), settled("tank/disk1", kind="volume", mounted=False, mountpoint="")
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[folder, volume])
    for page in ("take", "policy"):
        assert 'name="below"' not in web.get(f"/snapshots/of/{volume.guid}/{page}/").content.decode()
        assert 'name="below"' in web.get(f"/snapshots/of/{folder.guid}/{page}/").content.decode()
    web.post(f"/snapshots/of/{volume.guid}/take/", {"name": "", "note": "", "below": "on"})
    assert json.loads(Job.objects.get().operation)["below"] is False
    numbers = dict.fromkeys(snapshot_names.GRAINS, "2")
    answer = web.post(f"/snapshots/of/{volume.guid}/policy/", {**numbers, "first": "0", "last": "0"})
    assert answer.context["wanted"].daily == 2


def run_for(dataset: Dataset, *found: Snapshot) -> list[Snapshot]:
    """These snapshots as requested by runs of this box."""
    made = []
    for one in found:
        run = PolicyRun.objects.create(
            pool="tank", targets={str(dataset.guid): {"short": one.short, "grains": ["hourly"]}}
        )
        made.append(replace(one, run=str(run.pk)))
    return made


def test_schedule_change_shows_what_it_destroys_first(web, calm, zfs, agent):
    dataset = settled("tank/a", policy=TEXT, policy_source="local")
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[dataset])
    zfs.there["tank/a"] = run_for(dataset, *(snap("tank/a", number) for number in range(4)))
    collect_snapshots.update_snapshots([dataset])
    url = f"/snapshots/of/{dataset.guid}/policy/"
    numbers = {"frequent": 0, "hourly": 1, "daily": 0, "weekly": 0, "monthly": 0, "first": 0, "last": 0}
    page = web.post(url, {**numbers, "look": ""})
    assert "3 snapshots will be destroyed" in page.content.decode()
    assert "Space freed: 1.05 MB." in page.content.decode()
    assert agent.asked[-1]["ranges"] == [("tank/a@s0000", "tank/a@s0002")]
    assert Job.objects.count() == 0
    # Numbers that differ from those shown are shown before they are set.
    assert web.post(url, {**numbers, "set": "", "shown": "{}"}).status_code == 200
    assert Job.objects.count() == 0
    # It keeps less than now, so it is reviewed and asks for the password.
    review = Page(web.post(url, {**numbers, "set": "", "shown": page.context["wanted"].fingerprint}))
    assert Job.objects.count() == 0
    web.post("/jobs/confirm/", review.form("/jobs/confirm/").data)
    assert Job.objects.get().kind == "set-snapshot-policy"
    more = web.post(url, {**numbers, "hourly": 48, "look": ""}).context["wanted"].fingerprint
    assert web.post(url, {**numbers, "hourly": 48, "set": "", "shown": more}).status_code == 302
    assert web.post(url, {**numbers, "hourly": -1}).status_code == 400


@pytest.mark.parametrize(
    ("changes", "own"),
    [
        ({"policy": TEXT, "policy_source": "local"}, True),
        ({"policy": TEXT, "policy_source": "inherited", "policy_from": "tank"}, False),
        ({}, False),
        ({"share": '{"smb":{"name":"a","write":["anna"]}}', "share_source": "local"}, False),
    ],
)
def test_only_a_schedule_that_was_set_here_is_called_its_own(web, calm, changes, own):
    dataset = settled("tank/a", **changes)
    ready(settled("tank"), dataset)
    assert ("It has a schedule of its own." in text_of(web.get(f"/snapshots/of/{dataset.guid}/policy/"))) is own


def test_schedule_projection_is_drawn_for_any_day(web, calm, zfs):
    dataset = settled("tank/a")
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[dataset])
    url = f"/snapshots/of/{dataset.guid}/policy/"
    numbers = {"frequent": 0, "hourly": 0, "daily": 3, "weekly": 0, "monthly": 2, "first": 0, "last": 0, "look": ""}
    page = web.post(url, {**numbers, "day": "2031-07-20"})
    text = page.content.decode()
    assert "What will exist on 20 July 2031" in text
    assert [at.astimezone(schedule.box_zone()).date().isoformat() for at, _grains in page.context["will_be"]] == [
        "2031-07-20",
        "2031-07-19",
        "2031-07-18",
        "2031-07-01",
        "2031-06-01",
    ]
    assert "3 daily, 2 monthly, the oldest of" in text
    drawn = page.context["drawing"]
    marks = [x for lane in drawn.lanes for x in lane.marks]
    assert len(marks) == 5
    assert all(0 <= x <= drawn.width for x in marks)
    assert [words for words, _x in drawn.ages] == ["1 day", "1 week", "1 month"]
    assert "a day like today" in web.post(url, numbers).content.decode()
    nothing = web.post(url, {**numbers, "daily": 0, "monthly": 0})
    assert (nothing.status_code, nothing.context["drawing"]) == (200, None)
    for day in ("1066-10-14", "9999-12-31", "soon"):
        assert web.post(url, {**numbers, "day": day}).status_code == 400


def test_following_parent_shows_what_it_destroys_first(web, calm, zfs, agent):
    one = SetSnapshotPolicy(dataset="x", policy=Policy(hourly=1)).property_value
    above = settled("tank/a", policy=one, policy_source="local")
    own = settled("tank/a/b", policy=TEXT, policy_source="local")
    below = settled("tank/a/b/c", policy=TEXT, policy_source="inherited", policy_from="tank/a/b")
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[above, own, below])
    for dataset in (own, below):
        zfs.there[dataset.name] = run_for(dataset, *(snap(dataset.name, number) for number in range(2)))
    collect_snapshots.update_snapshots([above, own, below])
    url = f"/snapshots/of/{own.guid}/policy/follow/"
    page = web.get(url)
    assert "It then follows tank/a and keeps 1 hourly snapshots." in page.content.decode()
    assert [row.name for row in page.context["going"]] == ["tank/a/b@s0000", "tank/a/b/c@s0000"]
    # A schedule that differs from the one shown is shown before it is followed.
    assert web.post(url, {"shown": ""}).status_code == 200
    assert Job.objects.count() == 0
    review = Page(web.post(url, {"shown": page.context["shown"]}))
    assert Job.objects.count() == 0
    web.post("/jobs/confirm/", review.form("/jobs/confirm/").data)
    assert json.loads(Job.objects.get().operation)["dataset"] == "tank/a/b"
    page = web.get(f"/snapshots/of/{above.guid}/policy/follow/")
    assert "no automatic snapshots are taken any more" in page.content.decode()
    assert "No snapshots will be destroyed" in page.content.decode()


# --- the clock ------------------------------------------------------------------------------------------------
def ready(*datasets: Dataset) -> None:
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=datasets)
    store.checked("snapshots", changed=False)


def test_due_run_is_requested_once_and_recorded_first(calm, zfs):
    a, b = settled("tank/a", policy=TEXT, policy_source="local"), settled("tank/b")
    ready(a, b)
    (job,) = snapshot_policies.run_due_policies()
    operation = json.loads(job.operation)
    assert [target["dataset"] for target in operation["targets"]] == ["tank/a"]
    assert PolicyRun.objects.get().targets[str(a.guid)]["grains"] == ["hourly"]
    assert snapshot_policies.run_due_policies() == []


def test_only_snapshots_of_own_runs_are_recorded_and_pruned(calm, zfs):
    a = settled("tank/a", policy=TEXT, policy_source="local")
    ready(a)
    now = timezone.now()
    mine = run_for(a, *(automatic("tank/a", number, now - timedelta(hours=3 - number)) for number in range(4)))
    stranger = snap("tank/a", 10, run=str(uuid.uuid4()))
    renamed = replace(run_for(a, snap("tank/a", 11))[0], name="tank/a@elsewhere")
    by_hand = snap("tank/a", 12)
    zfs.there["tank/a"] = [*mine, stranger, renamed, by_hand]
    collect_snapshots.update_snapshots([a])
    assert {one.guid for one in MadeSnapshot.objects.all()} == {str(one.guid) for one in mine}
    (job,) = snapshot_policies.run_due_policies()
    assert job.kind == "prune-snapshots"
    assert [one[0] for one in json.loads(job.operation)["snapshots"]] == [one.name for one in mine[:2]]


SKIPPING = SetSnapshotPolicy(dataset="x", policy=Policy(hourly=2, daily=2, skip_unchanged=True)).property_value


def test_unchanged_folder_gives_due_grains_to_latest_snapshot(calm, zfs):
    a = settled("tank/a", policy=SKIPPING, policy_source="local", written=0)
    ready(a)
    store.checked("datasets", changed=False)
    old = snap("tank/a", 1, created=timezone.now() - timedelta(days=3))
    zfs.there["tank/a"] = run_for(a, old)
    collect_snapshots.update_snapshots([a])
    assert snapshot_policies.run_due_policies() == []
    made = MadeSnapshot.objects.get()
    assert made.grains == "hourly,daily"
    assert made.until
    assert abs(timezone.now() - made.until) < timedelta(minutes=1)
    # It is kept as a daily one too: two newer hourly ones do not expire it.
    newer = run_for(a, *(snap("tank/a", number) for number in (2, 3)))
    zfs.there["tank/a"] += newer
    collect_snapshots.doubt_snapshots(["tank/a"])
    collect_snapshots.update_snapshots([a])
    assert policy_ledger.expired_rows([(a, Policy(hourly=2, daily=2))], {str(a.guid): 3}) == []


def test_unchanged_folder_with_manual_latest_snapshot_gets_automatic_one(calm, zfs):
    a = settled("tank/a", policy=SKIPPING, policy_source="local", written=0)
    ready(a)
    zfs.there["tank/a"] = [*run_for(a, snap("tank/a", 1)), snap("tank/a", 2)]
    collect_snapshots.update_snapshots([a])
    (job,) = snapshot_policies.run_due_policies()
    assert job.kind == "run-snapshot-policies"
    assert MadeSnapshot.objects.get().grains == "hourly"


def test_start_with_earlier_date_continues_from_recorded_time(calm, zfs, monkeypatch):
    """Schedules use and record the trusted time, and an alert says so."""
    monkeypatch.setattr("appliance.system.clock.is_synced", lambda: False)
    a = settled("tank/a", policy=TEXT, policy_source="local")
    ready(a)
    real = timezone.now() + timedelta(days=400)
    ClockRow.objects.create(boot="before", running=5000.0, wall=real)
    (job,) = snapshot_policies.run_due_policies()
    assert f"{real:%Y.%m.%d}" in json.loads(job.operation)["moment"]
    run = PolicyRun.objects.get()
    assert abs(datetime.fromisoformat(run.targets[str(a.guid)]["at"]) - real) < timedelta(minutes=1)
    Job.objects.update(state=Job.State.DONE)
    zfs.there["tank/a"] = [
        snap("tank/a", 1, name=f"tank/a@{run.targets[str(a.guid)]['short']}", run=str(run.pk), created=timezone.now())
    ]
    collect_snapshots.doubt_snapshots(["tank/a"])
    collect_snapshots.update_snapshots([a])
    assert snapshot_policies.run_due_policies() == []  # it counts for the hour that is believed
    assert "clock.doubted" in {fault.kind for fault in missed_schedules.update_overdue(store.facts(), timezone.now())}
    monkeypatch.setattr("appliance.system.clock.is_synced", lambda: True)
    snapshot_policies.run_due_policies()
    assert "clock.doubted" not in {
        fault.kind for fault in missed_schedules.update_overdue(store.facts(), timezone.now())
    }


def test_another_snapshot_of_same_name_is_not_recorded_one(calm, zfs):
    a = settled("tank/a", policy=TEXT, policy_source="local")
    ready(a)
    mine = run_for(a, *(snap("tank/a", number) for number in range(4)))
    zfs.there["tank/a"] = mine
    collect_snapshots.update_snapshots([a])
    zfs.there["tank/a"] = [replace(mine[0], guid=77, run=""), *mine[1:]]
    collect_snapshots.doubt_snapshots(["tank/a"])
    collect_snapshots.update_snapshots([a])
    assert policy_ledger.expired_rows([(a, Policy(hourly=2))], {str(a.guid): 4})[0].short == "s0001"
    assert not MadeSnapshot.objects.filter(guid=str(mine[0].guid)).exists()


def test_a_pool_whose_row_cannot_be_decoded_is_not_asked_and_the_others_are(calm):
    rows.put(pools=[rows.pool_of("tank", 1000), rows.pool_of("other", 1000)])
    assert store.stopped_pools() == set()
    PoolRow.objects.filter(name="other").update(facts="{")
    assert store.stopped_pools() == {"other"}


def test_failed_run_is_retried_after_pause(calm, zfs):
    ready(settled("tank/a", policy=TEXT, policy_source="local"))
    (job,) = snapshot_policies.run_due_policies()
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED)
    assert snapshot_policies.run_due_policies() == []
    # A job dated by a clock that was a year ahead does not count.
    for created in (timezone.now() - timedelta(hours=1), timezone.now() + timedelta(days=365)):
        Job.objects.update(created=created)
        (job,) = snapshot_policies.run_due_policies()
        assert snapshot_policies.run_due_policies() == []
        Job.objects.update(state=Job.State.FAILED)
        assert snapshot_policies.run_due_policies() == []


def test_repeated_failures_are_retried_less_often(calm, zfs):
    ready(settled("tank/a", policy=TEXT, policy_source="local"))
    now = timezone.now()
    for minutes in (200, 150, 100):
        (job,) = snapshot_policies.run_due_policies()
        Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, created=now - timedelta(minutes=minutes))
    mine = Job.objects.all()
    assert snapshot_policies.resting_kinds(mine, now - timedelta(minutes=61)) == {("run-snapshot-policies", "tank")}
    assert snapshot_policies.resting_kinds(mine, now - timedelta(minutes=59)) == set()
    # A success resets the count.
    (job,) = snapshot_policies.run_due_policies()
    Job.objects.filter(pk=job.pk).update(state=Job.State.DONE, created=now - timedelta(minutes=95))
    assert snapshot_policies.resting_kinds(mine, now - timedelta(minutes=90)) == set()


def test_nothing_is_taken_before_snapshots_were_read(calm, zfs):
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[settled("tank/a", policy=TEXT, policy_source="local")])
    assert snapshot_policies.run_due_policies() == []


def test_snapshot_is_held_with_reason(web, calm):
    (dataset,) = fill(1)
    row = SnapshotRow.objects.get()
    url = f"/snapshots/of/{dataset.guid}/{row.guid}/"
    assert "Release" not in web.get(url).content.decode()
    assert web.post(f"{url}hold/", {"why": ""}).status_code == 400
    assert web.post(f"{url}hold/", {"why": "for the tax office"}).status_code == 302
    operation = json.loads(Job.objects.get().operation)
    assert (operation["who"], operation["why"], operation["guid"]) == ("admin", "for the tax office", int(row.guid))
    assert web.get(f"{url}eat/").status_code == 404
    assert web.post(f"{url}rename/", {"to": "a b"}).status_code == 400
    SnapshotRow.objects.update(holds=1)
    assert "Release" in web.get(url).content.decode()


def put_one(**changes: Any) -> tuple[Dataset, str]:
    """A dataset with one snapshot, and the address of that."""
    dataset = settled(changes.pop("name", "tank/a"), **changes)
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[settled("tank"), dataset])
    SnapshotRow.objects.bulk_create([collect_snapshots.row_of(str(dataset.guid), snap(dataset.name, 1))])
    return dataset, f"/snapshots/of/{dataset.guid}/{SnapshotRow.objects.get().guid}/"


COPY = {"name": "tank/backups/a", "mounted": False, "mountpoint": "none", "copy_of": CopyMark(7, raw=False).text}
DISK = {"name": "tank/disk", "kind": "volume", "mounted": False, "mountpoint": ""}


def test_copy_offers_neither_a_snapshot_nor_a_schedule_nor_a_folder_of_its_own(web, calm):
    for changes, offered in (({}, True), (COPY, False)):
        SnapshotRow.objects.all().delete()
        dataset, url = put_one(**changes)
        page = web.get(f"/snapshots/of/{dataset.guid}/").content.decode()
        assert (f'href="/snapshots/of/{dataset.guid}/take/"' in page) is offered
        assert (f'href="/snapshots/of/{dataset.guid}/policy/"' in page) is offered
        for one in (url, f"{url}roll-back/"):
            assert (f'href="{url}clone/"' in web.get(one).content.decode()) is offered, one
        SnapshotRow.objects.all().delete()
        page = web.get(f"/snapshots/of/{dataset.guid}/").content.decode()  # its words without any snapshot
        assert (f'href="/snapshots/of/{dataset.guid}/policy/"' in page) is offered


@pytest.mark.parametrize(("kind", "here"), [("filesystem", True), ("filesystem", False), ("volume", True)])
def test_copy_offers_only_the_gentler_ways_that_it_has(web, calm, kind, here):
    """Its files are restored into the original, so only where that is on this box; a volume has none."""
    copy, url = put_one(**COPY, kind=kind)
    if here:
        rows.put(datasets=[settled("tank"), copy, settled("tank/a", guid=7)])
    undo, detail = web.get(f"{url}roll-back/").content.decode(), web.get(url).content.decode()
    assert f'href="/backups/copies/{copy.guid}/restore/"' in undo
    assert (f'href="{url}files/"' in undo) is (kind == "filesystem" and here)
    assert ("To restore only some files" in detail) is (kind == "filesystem" and here)


def test_words_for_a_volume_do_not_call_it_a_folder(web, calm):
    for changes in (DISK, {**COPY, "kind": "volume"}):
        SnapshotRow.objects.all().delete()
        dataset, _url = put_one(**changes)
        SnapshotReading.objects.update_or_create(
            dataset_key=str(dataset.guid), defaults={"dataset": dataset.name, "at": MADE, "count": 1}
        )
        of = f"/snapshots/of/{dataset.guid}/"
        assert "1 snapshot, which holds 0 B that is no longer in the volume." in text_of(web.get(of))
        assert "1 snapshot holds 0 B that is no longer in the volume." in text_of(web.get(f"{of}space/"))
        SnapshotRow.objects.all().delete()
        empty = text_of(web.get(of))
        assert "A snapshot keeps a volume" in empty and "restored from it" not in empty
        detail = msgspec.json.encode(DatasetDetail(dataset.name, dataset.guid)).decode()
        DatasetDetailRow.objects.create(key=str(dataset.guid), name=dataset.name, facts=detail)
        destroy = text_of(web.get(f"/folders/{dataset.guid}/destroy/"))
        assert "Content" in destroy and "Files in it" not in destroy and "Folders and volumes below" not in destroy


def test_snapshot_of_a_volume_is_told_without_files_and_folders(web, calm):
    _dataset, url = put_one(**DISK)
    detail, undo, form = (text_of(web.get(f"{url}{end}")) for end in ("", "roll-back/", "clone/"))
    assert "The whole volume as it was" in detail
    assert "Make a volume from it" in detail
    assert "make a volume from the snapshot" in undo
    assert "Name of the new volume" in form
    for text in (detail, undo, form):
        assert not [
            words
            for words in (
                "restore some files",
                "only some files",
                "make a folder",
                "new folder",
                "the folder",
                "whole folder",
            )
            if words in text.lower()
        ]


def test_snapshot_of_a_folder_is_told_with_its_files(web, calm):
    _dataset, url = put_one()
    assert "To restore only some files, look inside." in text_of(web.get(url))
    assert "restore some files , or make a folder from the snapshot" in text_of(web.get(f"{url}roll-back/"))
    assert "Name of the new folder" in text_of(web.get(f"{url}clone/"))


def test_bookmarks_are_collected_listed_and_destroyed_after_review(web, calm, zfs):
    one = settled("tank/a")
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[one])
    zfs.marks = [Bookmark(f"tank/a#{name}", 2**63 + 7, 7, MADE) for name in ("mark", "other one")]
    assert collect_snapshots.update_snapshots([one])
    url = f"/snapshots/of/{one.guid}/"
    page = web.get(url).content.decode()
    assert f'href="{url}bookmarks/mark/destroy/"' in page
    review = web.get(f"{url}bookmarks/other%20one/destroy/")
    assert review.status_code == 200
    assert "zfs destroy &#x27;tank/a#other one&#x27;" in review.content.decode()
    answer = web.post(
        "/jobs/confirm/",
        {
            key: review.context[name]
            for key, name in (("operation", "operation_json"), ("digest", "digest"), ("job", "job"), ("back", "back"))
        },
    )
    assert answer.status_code == 302
    assert (
        Job.objects.get().operation == f'{{"kind":"destroy-bookmark","bookmark":"tank/a#other one","guid":{2**63 + 7}}}'
    )
    # Its row is deleted when it is destroyed, and with its folder.
    zfs.marks = zfs.marks[:1]
    collect_snapshots.doubt_snapshots(["tank/a"])
    assert collect_snapshots.update_snapshots([one])
    assert [row.short for row in BookmarkRow.objects.all()] == ["mark"]
    assert web.get(f"{url}bookmarks/other%20one/destroy/").status_code == 404
    collect_snapshots.doubt_snapshots(["tank/a"])
    assert not collect_snapshots.update_snapshots([one])
    collect_snapshots.update_snapshots([])
    assert not BookmarkRow.objects.exists()


def test_many_bookmarks_are_paged(web, calm, zfs):
    one = settled("tank/a")
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[one])
    # Several of one moment, with names that need escaping in addresses and pages.
    zfs.marks = [Bookmark(f"tank/a#m {number:03d}.<b>", 7, number // 3, MADE) for number in range(250)]
    collect_snapshots.update_snapshots([one])
    url = f"/snapshots/of/{one.guid}/"
    text = web.get(url).content.decode()
    assert "These are the newest 20." in text
    assert f'href="{url}bookmarks/"' in text
    seen, after = [], ""
    while True:
        page = web.get(f"{url}bookmarks/", {"after": after})
        assert "<b>" not in page.content.decode()
        seen += [row.name for row in page.context["bookmarks"]]
        if not (after := page.context["next"]):
            break
    assert seen == [one.name for one in sorted(zfs.marks, key=lambda one: (-one.txg, one.name))]
    for nonsense in ("x", "1", "-1.x", "9" * 50):
        assert web.get(f"{url}bookmarks/", {"after": nonsense}).status_code == 200
    BookmarkRow.objects.exclude(short__startswith="m 00").delete()
    assert "These are the newest" not in web.get(url).content.decode()


def test_bookmark_with_existing_name_is_refused_at_field(web, calm):
    (dataset,) = fill(1)
    key = str(dataset.guid)
    row = SnapshotRow.objects.get()
    rows.bookmark_of(key)
    answer = web.post(f"/snapshots/of/{key}/{row.guid}/bookmark/", {"name": "mark"})
    assert answer.status_code == 400
    (error,) = answer.context["form"].errors.as_data()["name"]
    assert error.code == "bookmark-exists"
    assert web.post(f"/snapshots/of/{key}/{row.guid}/bookmark/", {"name": "mark2"}).status_code == 302
