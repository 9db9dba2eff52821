"""Self-tests by schedule, from rows to jobs; and the pages that set it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance import schedule
from appliance.disks.smart_values import Reading, SelfTest
from appliance.zfs.vdev_tree import link_of
from tests.unit.made import recorded_pool
from tests.web import rows
from web.alerts.models import Alert, DiskCare, SelfTestPlan
from web.disks import smart_history
from web.inventory import store
from web.inventory.models import DiskRow, PoolRow
from web.jobs.models import Job
from workers import selftests
from workers.alerts import evaluate_alerts

DISK = "ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001"
NIGHT = datetime(2026, 3, 10, 2, tzinfo=UTC)
WELL = Reading(answered=True, passed=True, temperature=31, able=True, hours=40000)


@pytest.fixture
def box(calm, monkeypatch) -> None:
    monkeypatch.setattr(schedule, "box_zone", lambda: UTC)
    rows.recorded_box()
    smart_history.store_answers(dict.fromkeys(DiskRow.objects.all(), WELL))


def finish() -> None:
    Job.objects.update(state="done")


def test_the_disks_of_a_pool_have_their_long_tests_on_nights_of_their_own(box):
    pool = {link_of(device) for device in recorded_pool().devices()}
    tested = []
    for night in range(4):
        begun = [
            job
            for job in selftests.begin_due_selftests(NIGHT + timedelta(days=night))
            if job.subject.rsplit("/", 1)[-1] in pool
        ]
        assert len(begun) == 1
        assert '"wake":false' in begun[0].operation.replace(" ", "")
        tested.append(begun[0].subject)
        finish()
    assert len(set(tested)) == 4


def test_a_new_disk_may_be_stored_by_two_threads_at_once(box, monkeypatch):
    """The clock and the alert rules both do it after a start."""
    read = DiskCare.objects.values_list

    def read_before_the_other(*fields, **options):
        found = list(read(*fields, **options))
        monkeypatch.undo()
        selftests.store_new_disks(NIGHT - timedelta(seconds=1))
        return found

    DiskCare.objects.all().delete()
    monkeypatch.setattr(DiskCare.objects, "values_list", read_before_the_other)
    selftests.store_new_disks(NIGHT)
    assert set(read("since", flat=True)) == {NIGHT - timedelta(seconds=1)}
    assert DiskCare.objects.count() == DiskRow.objects.count()


def test_nothing_begins_while_one_is_being_begun_or_pools_cannot_be_read(box):
    assert selftests.begin_due_selftests(NIGHT)
    assert selftests.begin_due_selftests(NIGHT + timedelta(hours=1)) == []
    assert selftests.begin_due_selftests(NIGHT.replace(hour=12)) == []


def test_a_job_that_hangs_on_one_disk_leaves_the_others_their_tests(box):
    begun = selftests.begin_due_selftests(NIGHT)
    Job.objects.exclude(pk=begun[0].pk).update(state="done")
    Job.objects.update(created=NIGHT - timedelta(hours=1))
    later = selftests.begin_due_selftests(NIGHT + timedelta(days=2))
    assert later
    assert begun[0].subject not in {job.subject for job in later}


def test_odd_row_of_one_disk_or_pool_leaves_the_others_their_tests(box):
    first, *_others = selftests.begin_due_selftests(NIGHT)
    Job.objects.all().delete()
    DiskCare.objects.update(short=None, long=None)
    DiskRow.objects.filter(key=first.subject.rsplit("/", 1)[-1]).update(facts="{}")
    PoolRow.objects.update(facts="{}")
    begun = selftests.begin_due_selftests(NIGHT)
    assert begun and first.subject not in {job.subject for job in begun}


def test_a_disk_that_is_left_out_is_not_tested_and_can_come_back(web, box):
    for row in DiskRow.objects.all():
        assert web.post(f"/disks/{row.key}/health/tests/", {"tested": "no"}).status_code == 302
    assert selftests.begin_due_selftests(NIGHT) == []
    assert "leaves it out" in web.get(f"/disks/{DISK}/health/").content.decode()
    web.post(f"/disks/{DISK}/health/tests/", {"tested": "yes"})
    assert [job.subject.rsplit("/", 1)[-1] for job in selftests.begin_due_selftests(NIGHT)] == [DISK]


def test_a_running_test_whose_rest_is_unknown_is_shown_and_no_other_begins(web, box):
    smart_history.store_answers(dict.fromkeys(DiskRow.objects.all(), replace(WELL, testing=True)))
    page = web.get(f"/disks/{DISK}/health/").content.decode()
    assert "does not report how much of it is left" in page
    assert "Start a long test" not in page
    assert selftests.begin_due_selftests(NIGHT) == []


def test_what_is_set_for_a_disk_while_its_test_begins_stays_set(box, monkeypatch):
    def set_meanwhile() -> None:
        DiskCare.objects.update(sleep=20, tested=False)

    plan = selftests.selftest_plan
    monkeypatch.setattr(selftests, "selftest_plan", lambda: (set_meanwhile(), plan())[1])
    begun = selftests.begin_due_selftests(NIGHT)
    assert begun
    assert set(DiskCare.objects.values_list("sleep", "tested")) == {(20, False)}
    assert DiskCare.objects.exclude(short=None, long=None).count() == len(begun)


def test_the_schedule_can_be_set(web, box):
    values = {"short": "never", "long": "never", "first": 2, "last": 5}
    assert web.post("/alerts/tests/", values).status_code == 302
    assert SelfTestPlan.load_row().long == "never"
    assert selftests.begin_due_selftests(NIGHT) == []
    assert web.post("/alerts/tests/", {**values, "first": 24}).status_code == 400
    assert web.post("/alerts/tests/", {**values, "long": "hourly"}).status_code == 400


def test_a_disk_that_has_not_tested_itself_for_long_is_told_until_it_has(box):
    evaluate_alerts.evaluate_alerts()
    DiskCare.objects.update(since=timezone.now() - timedelta(days=100))
    evaluate_alerts.evaluate_alerts()
    assert Alert.objects.get(kind="test.overdue", subject=DISK).state == "open"
    tested = replace(WELL, tests=(SelfTest("long", True, "Completed", 39990),))
    smart_history.store_answers(dict.fromkeys(DiskRow.objects.all(), tested))
    store.checked("temperatures", changed=True)
    evaluate_alerts.evaluate_alerts()
    assert Alert.objects.get(kind="test.overdue", subject=DISK).state == "cleared"


@pytest.mark.parametrize(("before", "hours"), [(40000, 40000), (None, None)])
def test_an_answer_without_hours_of_use_makes_no_test_overdue(box, before, hours):
    DiskRow.objects.update(reading={})
    tested = replace(WELL, hours=before, tests=(SelfTest("long", True, "Completed", 39990),))
    for answer in (tested, replace(tested, hours=None)):
        smart_history.store_answers(dict.fromkeys(DiskRow.objects.all(), answer))
    store.checked("temperatures", changed=True)
    evaluate_alerts.evaluate_alerts()
    DiskCare.objects.update(since=timezone.now() - timedelta(days=100))
    evaluate_alerts.evaluate_alerts()
    assert not Alert.objects.filter(kind="test.overdue").exists()
    assert DiskRow.objects.get(key=DISK).reading["hours"] == hours
