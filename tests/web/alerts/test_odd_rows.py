"""A row of the inventory that cannot be decoded is named, and what the other rows say is judged all the same."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone
from msgspec.structs import replace

from appliance.alerts.fault import Fault
from appliance.facts.box import Pool
from tests.unit.made import dataset
from tests.web import rows
from tests.web.workers.test_guard import failing, long_enough
from web.alerts.models import Alert, PoolDay
from web.disks.models import BayRow
from web.inventory import stability, store
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import DiskRow, PoolRow, ReceiverRow, ServiceRow
from workers import backups, guard, received_copies
from workers.alerts import evaluate_alerts, missed_schedules

ODD = ["", "{", "[]", "7", '{"name": 7}']
FULL = {"used": 97 * 10**9, "available": 3 * 10**9}


@pytest.fixture
def pools(calm) -> tuple[Pool, Pool]:
    """The recorded pool and a second one beside it, both nearly full; each has been seen before."""
    good = rows.recorded_box()
    other = replace(good, name="other", guid=4711, vdevs=())
    rows.put(pools=[good, other], datasets=[dataset("tank", **FULL), dataset("other", guid=12, **FULL)])
    evaluate_alerts.store_pool_days([good, other], timezone.now())
    return good, other


def judge() -> str:
    """Judge until every wait is over; what could not be judged."""
    error = ""
    for _look in range(2):
        try:
            evaluate_alerts.evaluate_alerts()
        except guard.PartlyFailed as problem:
            error = str(problem)
        long_enough()
    return error


def told() -> set[tuple[str, str]]:
    return set(Alert.objects.exclude(state="cleared").values_list("kind", "subject"))


def fail_disk(row: DiskRow) -> None:
    reasons = [["failing", "It is failing.", "pending", 99, ""]]
    DiskRow.objects.filter(pk=row.pk).update(verdict="failing", reasons=reasons)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_pool_row_hides_neither_the_other_pools_nor_the_disks(pools, odd):
    good, other = pools
    PoolRow.objects.filter(key=str(other.guid)).update(facts=odd)
    failing_row = DiskRow.objects.order_by("key")[0]
    fail_disk(failing_row)
    assert judge().startswith("other: ")
    assert ("disk.failing", failing_row.key) in told()
    assert ("pool.full96", str(good.guid)) in told()


def test_an_odd_pool_row_is_no_missing_pool(pools):
    _good, other = pools
    PoolRow.objects.filter(key=str(other.guid)).update(facts="{")
    judge()
    assert not Alert.objects.filter(kind="pool.missing").exists()
    assert not PoolDay.objects.filter(ended=True).exists()


def test_pools_that_cannot_be_read_at_all_are_not_missing(pools, monkeypatch):
    monkeypatch.setattr(store, "facts_of_pools", failing(RuntimeError("no")))
    judge()
    assert not Alert.objects.filter(kind="pool.missing").exists()


def test_the_next_reading_repairs_an_odd_pool_row(pools):
    good, other = pools
    PoolRow.objects.filter(key=str(other.guid)).update(facts="{")
    stability.replace_pools([good, other], timezone.now())
    assert judge() == ""


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_disk_row_hides_no_other_disk_and_gives_it_no_wrong_bay(pools, odd):
    good, _other = pools
    first, *_between, last = DiskRow.objects.order_by("key")
    BayRow.objects.all().delete()
    fail_disk(last)
    DiskRow.objects.filter(pk=first.pk).update(facts=odd)
    assert judge().startswith(f"{first.key}: ")
    assert {("disk.failing", last.key), ("pool.full96", str(good.guid))} <= told()
    assert "bay" not in Alert.objects.get(kind="disk.failing").summary


@pytest.mark.parametrize("column", [{"reasons": 7, "verdict": "watch"}, {"reading": []}, {"reading": {"tests": [7]}}])
def test_odd_figures_of_a_disk_hide_no_other_disk(pools, column):
    first, *_between, last = DiskRow.objects.order_by("key")
    fail_disk(last)
    DiskRow.objects.filter(pk=first.pk).update(**column)
    assert first.key in judge()
    assert ("disk.failing", last.key) in told()


def test_bays_that_cannot_be_read_hide_no_disk_and_are_not_guessed(pools, monkeypatch):
    row = DiskRow.objects.order_by("key")[0]
    fail_disk(row)
    monkeypatch.setattr(evaluate_alerts, "read_known_bays", failing(DatabaseError("malformed")))
    assert judge().startswith("labels of bays: ")
    disk = row.fact
    assert Alert.objects.get(kind="disk.failing").summary.startswith(
        f"Disk {disk.model} …{disk.serial[-4:]} is failing"
    )


def test_an_odd_top_folder_leaves_the_fill_of_the_other_pools_judged(pools):
    good, other = pools
    DatasetRow.objects.filter(name="other").update(facts="{")
    assert judge().startswith("other: ")
    assert {subject for kind, subject in told() if kind == "pool.full96"} == {str(good.guid)}
    assert str(other.guid) in set(PoolDay.objects.values_list("guid", flat=True))


@pytest.mark.parametrize("model", [ReceiverRow, ServiceRow])
def test_another_odd_row_is_named_and_hides_no_pool(pools, model):
    good, _other = pools
    model.objects.create(key="odd", name="odd one", facts="{")
    assert "odd one: " in judge()
    assert ("pool.full96", str(good.guid)) in told()


def test_overdue_work_of_one_kind_is_told_although_another_cannot_be_looked_up(pools, monkeypatch):
    fault = Fault("scrub.overdue", "x", "It was not scrubbed in time.")
    monkeypatch.setattr(missed_schedules, "overdue_scrubs", lambda *_some: iter([fault]))
    monkeypatch.setattr(received_copies, "received_faults", failing(RuntimeError("no")))

    def half(*_some: Any) -> Any:
        yield Fault("backup.old", "y", "The backup is too old.")
        raise RuntimeError

    monkeypatch.setattr(backups, "backup_faults", half)
    error = judge()
    assert "backups: " in error
    assert "received copies: " in error
    assert ("scrub.overdue", "x") in told()
