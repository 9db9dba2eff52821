"""Pages about the space that snapshots use, holds, and automatic snapshots."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.formatting import size_text
from appliance.snapshots.policy import Policy
from appliance.snapshots.set_policy import SetSnapshotPolicy
from tests.web import rows
from tests.web.snapshots.test_snapshots import fill, settled, snap
from tests.web.system.test_queries import queries
from web.inventory.dataset_models import SnapshotReading, SnapshotRow
from web.snapshots import policy_ledger, space
from web.snapshots.models import MadeSnapshot
from web.snapshots.policy_ledger import Cost
from workers import collect_snapshots

RULE = SetSnapshotPolicy(dataset="x", policy=Policy(hourly=2)).property_value
ALONE = SetSnapshotPolicy(dataset="x", policy=Policy(daily=3, below=False)).property_value


def made(key: str, *ages: int) -> list[SnapshotRow]:
    """Made-up snapshots of so many days ago, oldest first."""
    now = timezone.now()
    found = [
        collect_snapshots.row_of(key, snap("tank/a", at, created=now - timedelta(days=days, minutes=1)))
        for at, days in enumerate(ages)
    ]
    SnapshotRow.objects.bulk_create(found)
    return found


def test_neighbours_are_measured_as_one_run():
    every = made("1", 9, 8, 7, 6)
    pairs = space.pairs_of(every, {every[0].guid, every[1].guid, every[3].guid})
    assert pairs == [("tank/a@s0000", "tank/a@s0001"), ("tank/a@s0003", "tank/a@s0003")]


def test_groups_are_exact_for_neighbours_else_minimum():
    every = made("1", 400, 100, 40, 10, 1)
    for row in every[1:4:2]:
        MadeSnapshot.objects.create(dataset_key="1", guid=row.guid, grains="hourly")
    MadeSnapshot.objects.create(dataset_key="1", guid=every[2].guid, grains="hourly,daily")
    asked, _held = space.build_question(every, "1", timezone.now())
    groups = {words: (count, pairs) for words, count, pairs in asked}
    assert groups["All snapshots"] == (5, [("tank/a@s0000", "tank/a@s0004")])
    assert groups["All older than a month"] == (3, [("tank/a@s0000", "tank/a@s0002")])
    assert groups["All automatic snapshots"] == (3, [("tank/a@s0001", "tank/a@s0003")])
    assert groups["Those taken every hour"] == (2, [("tank/a@s0001", "tank/a@s0001"), ("tank/a@s0003", "tank/a@s0003")])
    assert groups["Those not taken automatically on this box"][0] == 2
    sizes = [10] * sum(len(pairs) for _words, _count, pairs in asked)
    lines = {line.words: line for line in space.space_lines(asked, sizes)}
    assert not lines["All snapshots"].least
    assert lines["Those taken every hour"].least
    assert lines["Those taken every hour"].size == 20
    # A missing snapshot leaves out only its own group.
    broken = dict.fromkeys(line.words for line in space.space_lines(asked, [None, *sizes[1:]]))
    assert "All snapshots" not in broken
    assert len(broken) == len(lines) - 1


def test_page_shows_holds_and_possibly_forgotten_ones(web, calm, monkeypatch):
    (dataset,) = fill(3)
    SnapshotRow.objects.filter(short="s0001").update(holds=2)
    asked = []

    def last(request, *, silence):
        asked.append(request)
        old, new = 1_600_000_000, int(timezone.now().timestamp())
        holds = {"tank/d0@s0001": {"larder:anna:for <the> tax office": old, "zrepl": new}}
        return {"facts": {"ranges": [2**20 for _pair in request["ranges"]], "holds": holds}}

    monkeypatch.setattr("appliance.agent_client.send_request", last)
    text = web.get(f"/snapshots/of/{dataset.guid}/space/").content.decode()
    assert asked[0]["held"] == ["tank/d0@s0001"]
    assert "for &lt;the&gt; tax office (anna)" in text
    assert "zrepl (set by another tool)" in text
    assert text.count("Perhaps forgotten") == 1
    assert size_text(2**20) in text


@pytest.mark.parametrize("count", [0, 5])
def test_page_works_without_snapshots_or_answer(web, calm, count):
    (dataset,) = fill(count)
    page = web.get(f"/snapshots/of/{dataset.guid}/space/")
    assert page.status_code == 200
    assert ("No snapshots" in page.content.decode()) == (count == 0)


def test_schedules_are_shown_with_source(web, calm):
    datasets = [
        settled("tank/a", policy=RULE, policy_source="local"),
        settled("tank/a/b", policy=RULE, policy_source="inherited", policy_from="tank/a"),
        settled("tank/c", policy=ALONE, policy_source="local"),
        settled("tank/c/d", policy=ALONE, policy_source="inherited", policy_from="tank/c"),
        settled("tank/e", policy=RULE, policy_source="received"),
        settled("tank/e/g", policy=RULE, policy_source="waiting", policy_from="tank/e"),
        settled("tank/f"),
    ]
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=datasets)
    text = web.get("/snapshots/policies/").content.decode()
    assert "that of tank/a" in text
    assert "not for folders below tank/c" in text
    assert text.count("from elsewhere (2 hourly); it waits until you set it") == 2
    few = len(queries(web, "/snapshots/policies/"))
    rows.put(datasets=[replace(datasets[0], name=f"tank/x{at:03d}", guid=5000 + at) for at in range(250)])
    assert len(queries(web, "/snapshots/policies/")) == few
    page = web.get("/snapshots/policies/")
    assert page.context["next"] == "tank/x099"
    assert "tank/x100" in web.get("/snapshots/policies/?after=tank/x099").content.decode()


def test_space_of_automatic_snapshots_is_range_where_unknown(web, calm):
    made = settled("tank/a", policy=RULE, policy_source="local", used_by_snapshots=90 * 2**20)
    mixed = settled("tank/a/b", policy=RULE, policy_source="inherited", used_by_snapshots=50 * 2**20)
    none = settled("tank/a/c", policy=RULE, policy_source="inherited", used_by_snapshots=7 * 2**20)
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[made, mixed, none])
    for dataset, run, number in ((made, "r", 1), (made, "r", 2), (mixed, "r", 3), (mixed, "", 4), (none, "", 5)):
        SnapshotRow.objects.bulk_create(
            [collect_snapshots.row_of(str(dataset.guid), snap(dataset.name, number, run=run, used=10 * 2**20))]
        )
    for dataset, count in ((made, 2), (mixed, 2), (none, 1)):
        SnapshotReading.objects.create(
            dataset_key=str(dataset.guid), dataset=dataset.name, at=timezone.now(), count=count
        )
    found = policy_ledger.policy_costs([made, mixed, none])
    assert found[str(made.guid)] == Cost(2, 90 * 2**20, 90 * 2**20)
    assert found[str(mixed.guid)] == Cost(1, 10 * 2**20, 50 * 2**20)
    assert str(none.guid) not in found
    words = " ".join(re.sub(r"<[^>]+>", " ", web.get(f"/snapshots/of/{made.guid}/policy/").content.decode()).split())
    assert "3 automatic snapshots exist now, in 2 folders, and use 105 MB to 147 MB" in words
    listed = " ".join(re.sub(r"<[^>]+>", " ", web.get("/snapshots/policies/").content.decode()).split())
    assert "10.5 MB to 52.4 MB" in listed


def test_full_pool_says_what_snapshots_use(web, calm):
    def page(used: int) -> str:
        top = settled("tank", used=used, available=100 - used)
        rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[replace(top, guid=7)])
        return web.get("/pools/1000/").content.decode()

    SnapshotReading.objects.create(dataset_key="7", dataset="tank/a", at=timezone.now(), used=3 * 2**30)
    SnapshotReading.objects.create(dataset_key="8", dataset="tanks/a", at=timezone.now(), used=2**30)
    assert "Old snapshots hold" not in page(50)
    assert "Old snapshots hold 3.22 GB of tank." in page(95)
    SnapshotReading.objects.update(used=0)
    assert "Old snapshots hold" not in page(95)


def plain(page) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.content.decode()).split())


def test_holds_page_lists_all_holds_and_skips_stopped_pools(web, calm, monkeypatch):
    (dataset,) = fill(120)
    SnapshotRow.objects.update(holds=1)
    asked = []

    def last(request, *, silence):
        asked.append(request["held"])
        return {
            "facts": {"ranges": [], "holds": {"tank/d0@s0000": {"larder:anna:for <the> tax office": 1_600_000_000}}}
        }

    monkeypatch.setattr("appliance.agent_client.send_request", last)
    page = web.get("/snapshots/holds/")
    words = plain(page)
    assert "120 snapshots cannot be destroyed" in words
    assert "for &lt;the&gt; tax office (anna)" in words
    assert "1 of the holds below is old" in words
    assert "Perhaps forgotten" in words
    assert f'href="/snapshots/of/{dataset.guid}/{2**63}/release/"' in page.content.decode()
    seen, url = [], "/snapshots/holds/"
    while url:
        page = web.get(url)
        seen += asked[-1]
        url = f"/snapshots/holds/?after={page.context['next']}" if page.context["next"] else ""
    assert seen == [f"tank/d0@s{number:04d}" for number in range(120)]
    assert len(queries(web, "/snapshots/holds/")) == len(queries(web, "/snapshots/holds/?after=x"))
    rows.put(pools=[replace(rows.pool_of("tank", 1000), state="SUSPENDED")])
    asked.clear()
    assert "A pool has stopped" in plain(web.get("/snapshots/holds/"))
    assert asked == []
    SnapshotRow.objects.update(holds=0)
    assert "No protected snapshots" in plain(web.get("/snapshots/holds/"))


def test_folders_with_most_snapshot_space_come_first(web, calm):
    top = settled("tank", used=90 * 2**30)
    folders = [settled(f"tank/f{number:03d}", used_by_snapshots=number) for number in range(150)]
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[top, *folders])
    few = len(queries(web, "/snapshots/space/"))
    assert "Snapshots use no space" in plain(web.get("/snapshots/space/"))
    SnapshotReading.objects.bulk_create(
        SnapshotReading(
            dataset_key=str(one.guid), dataset=one.name, at=timezone.now(), count=1, used=one.used_by_snapshots * 2**20
        )
        for one in folders
    )
    page = web.get("/snapshots/space/")
    assert [line["dataset"].name for line in page.context["lines"]][:2] == ["tank/f149", "tank/f148"]
    held = sum(range(150)) * 2**20
    assert f"tank {size_text(held)} of the {size_text(90 * 2**30)} in use" in plain(page)
    rest = web.get("/snapshots/space/", {"after": page.context["next"]})
    assert [line["dataset"].name for line in rest.context["lines"]][
        -1
    ] == "tank/f001"  # folders whose snapshots use no space are left out
    assert len(page.context["lines"]) + len(rest.context["lines"]) == 149
    assert len(queries(web, "/snapshots/space/")) <= few + 4
    for nonsense in ("x", "1.", "-1.-1", "9" * 70):
        assert web.get("/snapshots/space/", {"after": nonsense}).status_code == 200
