"""The ways to more room in a pool: what the page says for pools of every shape, the price, and
the plan that is followed."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.facts.box import Disk, Pool, PoolDetail, PoolProperties, Use, Vdev
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset, Property, Snapshot
from appliance.layout.growth import pool_bytes, read_groups
from appliance.zfs.vdev_tree import partition_bytes
from tests.unit.made import dataset, disk, recorded_pool
from tests.unit.pools import shapes
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.system.test_queries import queries
from web.alerts.models import Alert, PoolDay
from web.inventory import store
from web.inventory.bays import bays_by_key
from web.inventory.box import read_box
from web.inventory.dataset_models import SnapshotRow
from web.inventory.models import PoolRow, PropertiesRow
from web.pools import growth_chart
from web.pools.growth import full_text
from web.pools.models import DiskPrice, GrowthPlan, WorkReport
from workers import collect_snapshots, growth_plans
from workers.alerts import evaluate_alerts

TB, GB = 10**12, 10**9
PAGE = "/pools/7/growth/"
NOW = timezone.now()


def raidz1() -> Pool:
    return shapes.pool(shapes.group("raidz1-0", *(shapes.leaf(number) for number in (1, 2, 3))))


def mixed() -> Pool:
    """A mirror of two and a single disk."""
    return shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2)), shapes.leaf(3, ashift=12))


def put(pool: Pool, *, percent: int = 60, snapshots: int = 0, disks: tuple[Disk, ...] = (), count: int = 6) -> int:
    """The inventory with that pool, so full; the bytes that it has for files."""
    plain = replace(pool, vdevs=tuple(replace(vdev, space=0) for vdev in pool.vdevs))
    total = pool_bytes(read_groups(plain)) or TB
    used = total * percent // 100
    root = dataset("tank", used=used, available=total - used, used_by_snapshots=snapshots)
    rows.put(
        pools=[plain],
        datasets=[root],
        disks=shapes.facts(plain, disks=disks, count=count).disks,
        accounts=[],
        shares=[],
    )
    rows.put_box()
    return total


def remember(days: int, used: int, daily: int, total: int) -> None:
    """So many days of history up to today."""
    PoolDay.objects.bulk_create(
        PoolDay(guid="7", name="tank", day=(NOW - timedelta(days=back)).date(), used=used - back * daily, total=total)
        for back in range(days)
    )


def gain(page: Page, key: str) -> int:
    """The exact bytes that the card of a way names."""
    title = next(found["title"] for _tag, found in page.elements if found.get("id") == f"gain-{key}")
    return int(title.removesuffix(" bytes").replace(",", ""))


def cards(page: Page) -> set[str]:
    return {found["id"] for tag, found in page.elements if tag == "section" and found.get("id", "").startswith("way-")}


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (shapes.mirror(), ("one more copy of the same files", "Add another mirror of 2", "Replace all 2 disks")),
        (raidz1(), ("Expand the raidz1 by a disk", "Add another raidz1 of 3")),
        (shapes.raidz2(), ("Expand the raidz2 by a disk", "survives 2 failed disks all the time")),
        (shapes.single(), ("makes it a mirror", "Replace the disk by one of 4 TB", "Survives no failed disk")),
        (mixed(), ("one more copy", "Replace all 3 disks")),
        (shapes.raidz2("OFFLINE", "ONLINE", "ONLINE", "ONLINE"), ("A disk does not work. Replace it first.",)),
        (shapes.replacing(), ("is rebuilding. Wait",)),
        (replace(shapes.raidz2(), state="SUSPENDED"), ("has stopped because its disks do not answer",)),
    ],
    ids=["mirror", "raidz1", "raidz2", "single", "mixed", "broken", "rebuilding", "stopped"],
)
def test_every_pool_has_every_way_or_its_reason(web, calm, pool, said):
    put(pool)
    response = web.get(PAGE)
    assert response.status_code == 200
    assert cards(Page(response)) == {f"way-{key}" for key in ("clean", "expand", "group", "replace", "pool")}
    for words in said:
        assert words in text_of(response), words


def test_without_four_weeks_no_line_and_no_date_is_shown(web, calm):
    total = put(shapes.raidz2())
    remember(20, total * 6 // 10, GB, total)
    page = text_of(web.get(PAGE))
    assert "Larder has known how full it is for 19 days only" in page
    assert "not known yet" in page
    assert b"<polyline" not in web.get(PAGE).content
    PoolDay.objects.all().delete()
    assert "since today" in text_of(web.get(PAGE))


def test_a_pool_that_does_not_grow_has_no_date(web, calm):
    total = put(shapes.raidz2())
    remember(60, total * 6 // 10, -GB, total)
    response = web.get(PAGE)
    assert "It has not grown in the last 59 days" in text_of(response)
    assert b"<polyline" not in response.content


def test_the_five_year_line_by_hand(web, calm):
    put(shapes.mirror())
    rows.put(datasets=[dataset("tank", used=400 * GB, available=600 * GB)])
    remember(60, 400 * GB, GB, TB)  # a GB of 1000 each day: full in 600 days, 80 % in 400
    response = web.get(PAGE)
    lines = [found["points"] for tag, found in Page(response).elements if tag == "polyline"]
    full = 600 * growth_chart.WIDTH / 1826  # 197.2
    # 40 % of 160 from the bottom is 96 from the top.
    assert lines[0] == f"0.0,96.0 {full:.1f},0.0 600.0,0.0"
    assert full_text(400, NOW.date()) in text_of(response)
    assert len(lines) == 4  # as it is, another group, larger disks, a second pool: nothing to clean up, no raidz


def test_the_five_year_line_of_each_way_by_hand(web, calm):
    put(shapes.mirror())
    rows.put(datasets=[dataset("tank", used=400 * GB, available=600 * GB, used_by_snapshots=100 * GB)])
    remember(60, 400 * GB, GB, TB)
    page = Page(web.get(PAGE))
    lines = [found["points"] for tag, found in page.elements if tag == "polyline"]
    assert len(lines) == 5  # as it is, cleaned up, another group, larger disks, a second pool
    # Cleaned up: 300 of 1000 are used, so it begins at 160 - 48 = 112.
    # At one a day the 700 that are left last 700 days, and 700 of 1826 days are 230.0 of 600.
    assert lines[1] == "0.0,112.0 230.0,0.0 600.0,0.0"
    # A second pool: 400 of 1000 and its own. In 1826 days 1826 more are used; it is 160 high.
    total = 1000 + gain(page, "pool") / GB
    assert total > 400 + 1826
    start, end = 160 - 160 * 400 / total, 160 - 160 * (400 + 1826) / total
    assert lines[4] == f"0.0,{start:.1f} 600.0,{end:.1f}"


def test_a_full_pool_is_told_as_that(web, calm):
    total = put(shapes.raidz2(), percent=99, snapshots=500 * GB)
    remember(60, total * 99 // 100, 5 * GB, total)
    response = web.get(PAGE)
    assert "It is more than 80 % full already." in text_of(response)
    assert gain(Page(response), "clean") == 500 * GB
    assert "/snapshots/space/" in {found.get("href") for _tag, found in Page(response).elements}


def test_the_bytes_are_those_of_the_appliance(web, calm):
    total = put(shapes.raidz2())
    plain = read_groups(PoolRow.objects.get(key="7").fact)
    assert gain(Page(web.get(PAGE)), "expand") > total // 5
    four = gain(Page(web.get(PAGE)), "replace")
    eight = gain(Page(web.get(f"{PAGE}?size={8 * TB}")), "replace")
    assert 0 < four < eight
    assert pool_bytes(plain) == total
    for strange in ("abc", "-1", "9" * 30, "٤"):
        assert gain(Page(web.get(PAGE, {"size": strange})), "replace") == four


def test_money_is_shown_once_the_owner_has_given_a_price(web, calm):
    put(shapes.raidz2(), count=4)
    assert "Costs" not in text_of(web.get(PAGE))
    done = web.post("/pools/7/growth/price/", {"per_tb": "17.50", "currency": "EUR"}, follow=True)
    text = text_of(done)
    assert "about 280 EUR" in text  # four disks of 4 TB
    assert "about 35 EUR" in text  # one of 2 TB
    wrong = web.post("/pools/7/growth/price/", {"per_tb": "-3"})
    assert wrong.status_code == 400
    assert DiskPrice.load_row().per_tb == DiskPrice.objects.get().per_tb
    web.post("/pools/7/growth/price/", {"per_tb": "", "currency": ""})
    assert "Costs" not in text_of(web.get(PAGE))


def test_disks_in_the_box_cost_nothing(web, calm):
    put(shapes.raidz2(), count=8)
    DiskPrice.objects.create(pk=1, per_tb=20, currency="EUR")
    assert "4, in the box already" in text_of(web.get(PAGE))
    system = disk(7, path="/dev/disk/by-id/usb-1", uses=(Use("system", "holds the system"),))
    put(shapes.raidz2(), count=4, disks=(system,))
    assert "4 of 4 TB, to be bought" in text_of(web.get(PAGE))


def test_a_way_leads_to_the_page_that_carries_it_out(web, calm):
    put(shapes.raidz2(), snapshots=GB)
    found = {got.get("href") for _tag, got in Page(web.get(PAGE)).elements}
    assert {"/pools/7/add/expand/?vdev=50", "/pools/7/add/group/", "/pools/new/", "/snapshots/space/"} <= found
    put(shapes.single())
    assert "/pools/7/replace/?vdev=101" in {got.get("href") for _tag, got in Page(web.get(PAGE)).elements}


def test_the_feature_and_the_version_decide(web, calm):
    put(shapes.raidz2())
    assert "zfs rewrite -r /tank" in text_of(web.get(PAGE))  # its box has 2.3.9
    rows.put_box(replace(rows.BOX, zfs_module="2.3.2-1"))
    assert "Not possible with this version of ZFS" in text_of(web.get(PAGE))
    rows.put(details=[PoolDetail(7, features_off=("raidz_expansion",))])
    assert "The feature raidz_expansion is off" in text_of(web.get(PAGE))
    rows.put(details=[PoolDetail(7, compatibility="openzfs-2.1-linux")])
    assert "The feature raidz_expansion is off" not in text_of(web.get(PAGE))
    values = {"feature@raidz_expansion": "disabled"}
    store.replace(PropertiesRow, [PoolProperties("tank", 7, values)], lambda found: str(found.guid))
    assert "The feature raidz_expansion is off" in text_of(web.get(PAGE))


def test_the_time_of_a_rebuild_is_measured_or_said_to_be_an_estimate(web, calm):
    pool = replace(shapes.raidz2(), allocated=2 * TB)
    put(pool)
    assert "an estimate: no rebuild or scrub of this pool was measured yet" in text_of(web.get(PAGE))
    report = {"pool_key": "7", "pool": "tank", "kind": "resilver", "outcome": "finished", "ended": NOW}
    WorkReport.objects.create(key="one", started=NOW - timedelta(hours=5), looked=TB, **report)
    assert "4 times about 10 h" in text_of(web.get(PAGE))  # twice the bytes of five hours


def test_the_pool_and_its_forecast_lead_here(web, calm):
    total = put(shapes.raidz2())
    remember(60, total * 6 // 10, total // 500, total)
    for url in ("/", "/pools/7/"):
        assert PAGE in {found.get("href") for _tag, found in Page(web.get(url)).elements}, url
    assert web.get("/pools/8/growth/").status_code == 404


def test_queries_do_not_grow_with_history_folders_and_reports(web, calm):
    total = put(shapes.raidz2())
    web.get(PAGE)  # whatever is remembered from page to page
    few = len(queries(web, PAGE))
    remember(180, total // 2, GB, total)
    rows.put(datasets=[dataset("tank"), *(dataset(f"tank/f{number}") for number in range(300))])
    WorkReport.objects.bulk_create(
        WorkReport(
            key=str(at),
            pool_key="7",
            pool="tank",
            kind="scrub",
            outcome="finished",
            started=NOW - timedelta(days=at, hours=2),
            ended=NOW - timedelta(days=at),
            looked=GB,
        )
        for at in range(100)
    )
    assert len(queries(web, PAGE)) == few


# --- cleaning up ----------------------------------------------------------------------------------------------------
def kept_snapshots(dataset: Dataset, *changes: dict[str, Any]) -> None:
    """Made-up snapshots s1, s2 … of a folder."""
    SnapshotRow.objects.bulk_create(
        collect_snapshots.row_of(
            str(dataset.guid),
            Snapshot(f"{dataset.name}@s{at}", at, at, NOW - timedelta(days=9 - at), **change),
        )
        for at, change in enumerate(changes, 1)
    )


def hrefs(page: Page) -> set[str | None]:
    return {found.get("href") for _tag, found in page.elements}


def test_protected_snapshots_and_what_they_share_are_not_promised(web, calm, monkeypatch):
    put(shapes.mirror())
    photos = dataset("tank/photos", used=300 * GB, used_by_snapshots=200 * GB)
    tank = dataset("tank", used=400 * GB, available=600 * GB, used_by_snapshots=7 * GB)
    rows.put(datasets=[tank, photos])
    kept_snapshots(photos, {}, {}, {"holds": 1, "used": 20 * GB}, {"used": 30 * GB})
    asked = []

    def answer(request: dict[str, Any], *, silence: float) -> dict[str, Any]:
        asked.append(request["ranges"])
        return {"facts": {"ranges": [90 * GB, 30 * GB], "holds": {}}}

    monkeypatch.setattr("appliance.agent_client.send_request", answer)
    response = web.get(PAGE)
    assert asked == [[("tank/photos@s1", "tank/photos@s2"), ("tank/photos@s4", "tank/photos@s4")]]
    assert gain(Page(response), "clean") == (7 + 90 + 30) * GB
    assert "freed at most" in text_of(response)
    assert "One snapshot is protected or has a clone." in text_of(response)


def test_without_an_answer_less_is_promised_and_said_to_be_the_least(web, calm):
    put(shapes.mirror())
    photos = dataset("tank/photos", used=300 * GB, used_by_snapshots=200 * GB)
    rows.put(datasets=[dataset("tank", used=400 * GB, available=600 * GB), photos])
    kept_snapshots(photos, {"used": 20 * GB}, {"clones": ("tank/other",), "used": 50 * GB})
    rows.put(
        datasets=[
            dataset("tank", used=400 * GB, available=600 * GB),
            photos,
            dataset("tank/other", origin="tank/photos@s2"),
        ]
    )
    response = web.get(PAGE)
    assert gain(Page(response), "clean") == 20 * GB
    assert "freed at least" in text_of(response)
    assert "not everything could be measured" in text_of(response)


def test_snapshots_and_old_copies_are_both_led_to(web, calm):
    put(shapes.mirror())
    tank = dataset("tank", used=400 * GB, available=600 * GB, used_by_snapshots=10 * GB)
    mark = CopyMark(99, raw=False).text  # of a folder that is not on this box
    copy = dataset("tank/backups/old", used=50 * GB, used_by_data=30 * GB, used_by_snapshots=20 * GB, copy_of=mark)
    rows.put(datasets=[tank, dataset("tank/backups", used=50 * GB), copy])
    page = Page(web.get(PAGE))
    assert gain(page, "clean") == 60 * GB
    assert {"/snapshots/space/", "/backups/"} <= hrefs(page)
    assert "Copies that no backup uses any more hold 50 GB, with their snapshots." in text_of(web.get(PAGE))


def test_a_reserved_volume_with_a_snapshot_is_led_to(web, calm):
    put(shapes.mirror())
    kept = {"refreservation": Property(str(100 * GB), "local")}
    volume = dataset(
        "tank/disk", used=160 * GB, used_by_data=60 * GB, used_by_reservation=100 * GB, kind="volume", properties=kept
    )
    rows.put(datasets=[dataset("tank", used=400 * GB, available=600 * GB), volume])
    page = Page(web.get(PAGE))
    assert gain(page, "clean") == 60 * GB
    # The page of snapshots by space has only folders whose files were deleted or changed.
    way = text_of(web.get(PAGE))
    assert "60 GB more are reserved for tank/disk" in way
    assert "Show the snapshots" in way
    assert "Show snapshots by space" not in way


# --- rewriting ------------------------------------------------------------------------------------------------------
def test_old_files_of_an_expanded_raidz_have_a_card(web, calm):
    put(raidz1())
    assert "Files from before the expansion" not in text_of(web.get(PAGE))
    pool = recorded_pool("zpool-status-expand-done-2.3.9.json")
    root = dataset("exp", used=1200 * 2**20, available=2400 * 2**20, used_by_snapshots=600 * 2**20, mountpoint="/exp")
    rows.put(pools=[pool], datasets=[root])
    response = web.get(f"/pools/{pool.guid}/growth/")
    (title,) = (found["title"] for _tag, found in Page(response).elements if found.get("id") == "old-blocks")
    assert title == f"{600 * 2**20 // 12:,} bytes"  # of what no snapshot holds, a twelfth
    assert "zfs rewrite -r /exp" in text_of(response)


# --- the plan -------------------------------------------------------------------------------------------------------
def pool_with(*numbers: int, **changes: Any) -> Pool:
    return shapes.pool(shapes.group("mirror-0", *(shapes.leaf(number) for number in numbers), **changes))


def large(number: int, **changes: Any) -> Vdev:
    return shapes.leaf(number, size=partition_bytes(4 * TB), **changes)


def begin(web) -> GrowthPlan:
    put(pool_with(1, 2))
    web.post("/pools/7/growth/plan/", {"size": str(4 * TB)})
    return GrowthPlan.objects.get()


def test_a_plan_is_begun_once_and_shown_where_the_pool_is(web, calm):
    plan = begin(web)
    assert (plan.guids, plan.size, plan.begun_by) == ((101, 102), 4 * TB, "admin")
    web.post("/pools/7/growth/plan/", {"size": str(8 * TB)})
    assert GrowthPlan.objects.count() == 1
    text = text_of(web.get("/pools/7/"))
    assert "Next to be replaced by a larger disk: bay 1" in text
    assert "0 of 2 disks are replaced by ones of 4 TB." in text
    assert "/pools/7/replace/?vdev=101" in {found.get("href") for _tag, found in Page(web.get(PAGE)).elements}


def test_a_plan_for_disks_that_are_not_larger_is_refused(web, calm):
    put(pool_with(1, 2))
    done = web.post("/pools/7/growth/plan/", {"size": str(2 * TB)}, follow=True)
    assert "Choose a larger disk" in text_of(done)
    assert not GrowthPlan.objects.exists()


def test_a_plan_follows_what_zfs_shows_and_closes_itself(web, calm):
    begin(web)
    later = timezone.now() + timedelta(days=3)
    once = shapes.pool(shapes.group("mirror-0", large(5), shapes.leaf(2)))
    assert list(growth_plans.follow_plans([once], later)) == []
    plan = GrowthPlan.objects.get()
    assert (plan.done, plan.moved) == (1, later)
    grown = shapes.pool(shapes.group("mirror-0", large(5), large(6), expandable=2 * TB))
    assert list(growth_plans.follow_plans([grown], later)) == []
    assert GrowthPlan.objects.get().ended is None  # its room is not used yet
    put(grown)
    assert "Use them whole" in text_of(web.get(PAGE))
    full = {"replace_size": partition_bytes(4 * TB)}
    used = shapes.pool(shapes.group("mirror-0", large(5, **full), large(6, **full), space=0))
    assert list(growth_plans.follow_plans([used], later)) == []
    plan = GrowthPlan.objects.get()
    assert plan.ended == later
    assert plan.outcome == "All 2 disks were replaced."
    assert "The plan" not in text_of(web.get(PAGE))


def test_a_plan_says_which_disk_took_which_place_and_when(web, calm):
    begin(web)
    assert "took the place of" not in text_of(web.get(PAGE))
    one, other = timezone.now() + timedelta(days=3), timezone.now() + timedelta(days=5)
    once = shapes.pool(shapes.group("mirror-0", large(5), shapes.leaf(2)))
    put(once)
    assert "did not see" not in text_of(web.get(PAGE))  # the next look finds it
    bays = bays_by_key(read_box().bays)
    list(growth_plans.follow_plans([once], one, bays))
    list(growth_plans.follow_plans([once], other, bays))
    assert [place[:2] + place[3:] for place in GrowthPlan.objects.get().replaced] == [
        ["101", "105", int(one.timestamp())]
    ]
    page = web.get(PAGE)
    assert re.search(r"Bay 5 \(WDC.*\) took the place of bay 1 \(WDC", text_of(page))
    assert one.astimezone(timezone.get_current_timezone()).strftime("%H:%M:%S") in page.content.decode()
    full = {"replace_size": partition_bytes(4 * TB)}
    both = shapes.pool(shapes.group("mirror-0", large(5, **full), large(6, **full), space=0))
    put(both)
    list(growth_plans.follow_plans([both], other, bays_by_key(read_box().bays)))
    assert GrowthPlan.objects.get().ended == other
    text = text_of(web.get(PAGE))  # the last one counts, though the plan closed at the same look
    assert "Disks replaced under the last plan" in text
    assert re.search(r"Bay 6 \(WDC.*\) took the place of bay 2 \(WDC", text)


def test_a_plan_from_before_places_were_noted_says_what_it_does_not_know(web, calm):
    begin(web)
    GrowthPlan.objects.update(seats={})
    once = shapes.pool(shapes.group("mirror-0", large(5), shapes.leaf(2)))
    put(once)
    list(growth_plans.follow_plans([once], timezone.now()))
    plan = GrowthPlan.objects.get()
    assert (plan.replaced, list(plan.seats.values())) == ([], [["105", "102"]])
    assert "Larder did not see which disk took its place" in text_of(web.get(PAGE))


def test_a_disk_that_the_plan_is_not_about_is_not_told_as_a_step_of_it(web, calm):
    put(pool_with(1, 2))
    web.post("/pools/7/growth/plan/", {"size": str(4 * TB)})
    GrowthPlan.objects.update(targets=[["101", "bay 1"]])
    list(growth_plans.follow_plans([pool_with(1, 5)], timezone.now()))
    assert GrowthPlan.objects.get().replaced == []


def test_a_plan_stays_open_while_a_disk_was_replaced_by_one_as_small(web, calm):
    begin(web)
    put(pool_with(5, 2))
    assert "0 of 2 disks are replaced by ones of 4 TB." in text_of(web.get(PAGE))
    mixed_sizes = shapes.pool(shapes.group("mirror-0", shapes.leaf(5), large(6), space=0))
    assert list(growth_plans.follow_plans([mixed_sizes], timezone.now())) == []
    assert GrowthPlan.objects.get().ended is None
    put(mixed_sizes)
    page = web.get(PAGE)
    assert "1 of 2 disks are replaced by ones of 4 TB." in text_of(page)
    assert "Next to be replaced by a larger disk: bay 5" in text_of(page)
    assert "/pools/7/replace/?vdev=105" in {found.get("href") for _tag, found in Page(page).elements}


def test_a_plan_that_stands_still_is_reminded_of_gently(web, calm):
    begin(web)
    now = timezone.now()
    assert list(growth_plans.follow_plans([pool_with(1, 2)], now + timedelta(days=29))) == []
    (fault,) = growth_plans.follow_plans([pool_with(1, 2)], now + timedelta(days=31))
    assert (fault.kind, fault.kind_info.severity, fault.link) == ("growth.standing", "notice", PAGE)
    assert "nothing has happened in its plan for 31 days" in fault.summary
    # A rebuild is a step under way, and a pool that is not here is told as that.
    assert (
        list(growth_plans.follow_plans([replace(pool_with(1, 2), scan=shapes.RESILVER)], now + timedelta(days=31)))
        == []
    )
    assert list(growth_plans.follow_plans([], now + timedelta(days=300))) == []


def test_the_reminder_becomes_an_alert_and_ends_with_the_plan(web, calm):
    begin(web)
    GrowthPlan.objects.update(moved=timezone.now() - timedelta(days=40))
    evaluate_alerts.evaluate_alerts()
    assert Alert.objects.get(kind="growth.standing").state == Alert.State.OPEN
    assert "Nothing has happened for 40 days." in text_of(web.get(PAGE))
    done = web.post("/pools/7/growth/plan/end/", follow=True)
    assert "The plan was ended." in text_of(done)
    web.post("/pools/7/growth/plan/end/")
    evaluate_alerts.evaluate_alerts()
    assert Alert.objects.get(kind="growth.standing").state == Alert.State.CLEARED
    assert GrowthPlan.objects.get().outcome == "Ended by admin."


def test_a_clock_that_was_ahead_silences_no_reminder_for_good(web, calm):
    begin(web)
    GrowthPlan.objects.update(moved=timezone.now() + timedelta(days=4000))
    list(growth_plans.follow_plans([pool_with(1, 2)], timezone.now()))
    assert GrowthPlan.objects.get().moved <= timezone.now()
