"""The pages of burn-ins: what is asked before anything is written, what is shown meanwhile, and the report."""

from __future__ import annotations

import uuid

import msgspec
import pytest
from django.utils import timezone

from appliance import agent_client
from appliance.burn_in.regions import RegionResult
from tests.reasons import codes_on_page
from tests.unit.made import BUSY, OLD, disk, path_of
from tests.web import rows
from tests.web.disks import burn_ins_made
from tests.web.routes import BURN_IN
from web import agent
from web.disks import burn_in_report
from web.disks.models import BurnIn
from web.inventory import store
from web.inventory.box import read_box
from web.inventory.models import DiskRow

KEY = path_of(1).rsplit("/", 1)[-1]
PAGE = f"/disks/{KEY}/burn-in/"
SERIAL = "WD-WCAZA0000001"
ANSWERS = {"how": "write", "rate": "50000000"}
State = BurnIn.State


@pytest.fixture(autouse=True)
def box(calm, monkeypatch):
    rows.empty_box(4)
    monkeypatch.setattr(agent, "last", lambda _request, **_more: {"facts": {}})


def text(reply) -> str:
    return " ".join(reply.content.decode().split())


def start(web, **changes):
    made = {**ANSWERS, "burn_in": str(uuid.uuid4()), "typed": SERIAL}
    return web.post(f"{PAGE}start/", {**made, **changes})


def hold_data(use=OLD) -> None:
    store.replace(DiskRow, [disk(1, uses=(use,)), disk(2)], lambda one: one.path.rsplit("/", 1)[-1])


def test_review_names_bay_model_and_serial_and_says_what_is_written(web):
    page = text(web.get(PAGE, {**ANSWERS, "answered": 1}))
    assert "All of this disk is written to" in page
    assert SERIAL in page
    assert "WDC WD20EARS-00MVWB0" in page
    assert "<dt>Bay</dt><dd>1</dd>" in page
    assert "--rate=50000000" in page
    assert "about" in page
    assert BurnIn.objects.count() == 0


def test_confirmed_burn_in_is_stored_once_and_begun(web, calm):
    pk = str(uuid.uuid4())
    for _twice in range(2):
        assert start(web, burn_in=pk).url == f"/disks/burn-ins/{pk}/"
    row = BurnIn.objects.get()
    assert (row.serial, row.disk, row.size, row.writes, row.rate) == (SERIAL, KEY, 2 * 10**12, True, 50 * 10**6)
    assert (row.state, row.created_by) == (State.RUNNING, "admin")
    assert ("workers.tick",) in calm
    assert "Short self-test" in text(web.get(f"/disks/burn-ins/{pk}/"))
    # A second one of the same disk leads to the first.
    assert start(web).url == PAGE
    assert web.get(PAGE).url == f"/disks/burn-ins/{pk}/"
    assert BurnIn.objects.count() == 1


@pytest.mark.parametrize("typed", ["", "wd-wcaza0000001", "WD-WCAZA0000002"])
def test_without_its_serial_number_nothing_is_started(web, typed):
    reply = start(web, typed=typed)
    assert reply.status_code == 400
    assert f"Type {SERIAL} exactly." in text(reply)
    assert BurnIn.objects.count() == 0


def test_selftests_alone_ask_for_nothing_to_be_typed(web):
    page = text(web.get(PAGE, {"how": "tests", "rate": 0, "answered": 1}))
    assert "to-type" not in page
    assert "Nothing on it changes" in page
    start(web, how="tests", rate=0, typed="")
    assert not BurnIn.objects.get().writes


def test_disk_that_holds_something_is_tested_only_without_writing(web):
    hold_data()
    reply = web.get(PAGE, {**ANSWERS, "answered": 1})
    assert reply.status_code == 409
    assert codes_on_page(reply) == ["burn-in-disk-in-use"]
    assert start(web).status_code == 409
    assert "erase it first" in text(web.get(PAGE))
    assert start(web, how="tests", typed="").status_code == 302


def test_disk_that_only_the_agent_sees_to_hold_data_is_refused(web, monkeypatch):
    used = {"kind": "unknown", "text": "holds data of a kind that Larder does not recognise"}
    monkeypatch.setattr(agent, "last", lambda _request, **_more: {"facts": {path_of(1): used}})
    assert codes_on_page(start(web)) == ["burn-in-disk-in-use"]
    assert BurnIn.objects.count() == 0


def test_disk_of_a_pool_is_refused_altogether(web):
    hold_data(BUSY)
    assert codes_on_page(web.get(PAGE)) == ["burn-in-disk-blocked"]
    assert codes_on_page(start(web, how="tests")) == ["burn-in-disk-blocked"]
    assert "Test this disk" not in text(web.get(f"/disks/{KEY}/"))


@pytest.mark.parametrize("changes", [{"how": "gutmann"}, {"rate": "7"}, {"rate": "x"}])
def test_odd_answers_start_nothing(web, changes):
    assert web.get(PAGE, {**ANSWERS, **changes, "answered": 1}).status_code == 400
    assert start(web, **changes).status_code == 409
    assert BurnIn.objects.count() == 0


def test_pause_resume_and_stop_are_requests_to_the_worker(web):
    row = burn_ins_made.made()
    for act, state in (("pause", "pausing"), ("resume", "running"), ("stop", "stopping"), ("resume", "stopping")):
        assert web.post(f"/disks/burn-ins/{row.pk}/act/{act}/").status_code == 302
        row.refresh_from_db()
        assert row.state == state
    assert web.post(f"/disks/burn-ins/{row.pk}/act/erase/").status_code == 404


@pytest.mark.parametrize(
    ("stage", "act", "said"),
    [
        ("long", "pause", "A self-test that has begun continues in the disk, and its result counts when you resume."),
        ("long", "stop", "A self-test that has begun continues in the disk."),
        ("write", "pause", "A region that is half done is tested again when you resume."),
        ("write", "stop", "It stops. What was found so far stays."),
    ],
)
def test_pause_and_stop_say_what_goes_on_in_the_disk(web, stage, act, said):
    row = burn_ins_made.made(stage=stage, attempts=1)
    reply = web.post(f"/disks/burn-ins/{row.pk}/act/{act}/", follow=True)
    flash = " ".join(str(one) for one in reply.context["messages"])
    assert said in flash
    assert ("self-test" in flash) == (stage == "long")


@pytest.mark.parametrize(
    ("changes", "goes_on"),
    [
        ({"stage": "long", "attempts": 1}, True),
        ({"stage": "long", "attempts": 0}, False),
        ({"stage": "write", "attempts": 1}, False),
        ({"stage": "long", "attempts": 1, "text": "The disk is no longer there."}, False),
    ],
)
def test_paused_page_says_that_a_selftest_goes_on_in_the_disk(web, changes, goes_on):
    burn_ins_made.made(state=State.PAUSED, **changes)
    assert ("continues in the disk" in text(web.get(f"/disks/burn-ins/{BURN_IN}/"))) == goes_on


def test_limit_can_be_changed_while_it_is_paused(web):
    burn_ins_made.made(stage="write", state=State.PAUSED, rate=50 * 10**6, results=[{"number": 0}])
    page = text(web.get(f"/disks/burn-ins/{BURN_IN}/"))
    assert '<option value="50000000" selected>At most 50 MB/s</option>' in page
    assert web.post(f"/disks/burn-ins/{BURN_IN}/act/resume/", {"rate": "20000000"}).status_code == 302
    row = BurnIn.objects.get()
    assert (row.state, row.rate, len(row.tested)) == (State.RUNNING, 20 * 10**6, 1)
    assert "<select" not in text(web.get(f"/disks/burn-ins/{BURN_IN}/"))


@pytest.mark.parametrize(
    "changes", [{"writes": False, "stage": "long"}, {"stage": "last"}, {"state": State.RUNNING}], ids=str
)
def test_no_limit_is_asked_for_where_nothing_more_is_written(web, changes):
    burn_ins_made.made(**{"stage": "write", "state": State.PAUSED, **changes})
    assert "<select" not in text(web.get(f"/disks/burn-ins/{BURN_IN}/"))


def test_resume_without_a_limit_keeps_the_one_that_was_chosen(web):
    burn_ins_made.made(stage="write", state=State.PAUSED, rate=50 * 10**6)
    web.post(f"/disks/burn-ins/{BURN_IN}/act/resume/")
    assert (BurnIn.objects.get().state, BurnIn.objects.get().rate) == (State.RUNNING, 50 * 10**6)


@pytest.mark.parametrize("rate", ["7", "x", ""])
def test_limit_that_is_not_offered_is_refused(web, rate):
    burn_ins_made.made(stage="write", state=State.PAUSED)
    reply = web.post(f"/disks/burn-ins/{BURN_IN}/act/resume/", {"rate": rate})
    assert codes_on_page(reply) == ["burn-in-speed-unknown"]
    assert BurnIn.objects.get().state == State.PAUSED


def test_only_resume_changes_the_limit(web):
    burn_ins_made.made(stage="write", rate=50 * 10**6)
    for act in ("resume", "pause", "stop"):
        web.post(f"/disks/burn-ins/{BURN_IN}/act/{act}/", {"rate": "20000000"})
        assert BurnIn.objects.get().rate == 50 * 10**6


def test_page_says_why_it_waits(web):
    burn_ins_made.made(stage="write", state=State.PAUSED, text="The disk is no longer there. Put it back, then resume.")
    page = text(web.get(f"/disks/burn-ins/{BURN_IN}/"))
    assert "It has stopped here" in page
    assert "Put it back" in page
    assert "Resume" in page


def test_page_says_what_is_left_of_a_selftest_only_while_the_disk_answers(web):
    row = burn_ins_made.made(stage="long", wanted=timezone.now())
    burn_ins_made.reading(row, left=90)
    address = f"/disks/burn-ins/{BURN_IN}/"
    assert "90 % of the self-test are left." in text(web.get(address))
    BurnIn.objects.update(wanted=timezone.now())
    assert "are left" not in text(web.get(address))
    BurnIn.objects.update(wanted=row.wanted, state=State.PAUSED)
    assert "are left" not in text(web.get(address))


def test_page_says_that_a_selftest_runs_whose_rest_is_unknown(web):
    row = burn_ins_made.made(stage="long", wanted=timezone.now())
    burn_ins_made.reading(row, testing=True)
    assert "does not report how much of it is left" in text(web.get(f"/disks/burn-ins/{BURN_IN}/"))


def test_report_of_a_clean_disk(web):
    row = burn_ins_made.finished()
    page = text(web.get(f"/disks/burn-ins/{BURN_IN}/"))
    assert "No fault was found." in page
    assert f"{len(row.regions)} of {len(row.regions)}" in page
    assert "Between 28 and 41 °C" in page
    assert page.count("<polyline") == 3
    assert "Regions that failed" not in page
    assert "Resume" not in page


PASSED, UNABLE = (
    {"passed": True, "text": ""},
    {"passed": None, "able": False, "text": "It does not support self-tests."},
)
BOTH, NEITHER = {"short": PASSED, "long": PASSED}, {"short": UNABLE, "long": UNABLE}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {},
            "Every sector was written and came back unchanged. The self-tests passed. The disk counts no new faults.",
        ),
        ({"tests": NEITHER}, "came back unchanged. The self-tests gave no result. The disk counts no new faults."),
        ({"before": {}}, "The self-tests passed. The disk reports no figures that could be compared."),
        (
            {"before": {"counts": {"crc": 3}}, "reading": {"counts": {"pending": 0}}},
            "no figures that could be compared.",
        ),
        (
            {"tests": NEITHER, "before": {}, "reading": {"counts": {}}},
            "came back unchanged. The self-tests gave no result. The disk reports no figures that could be compared.",
        ),
        (
            {"tests": {"short": PASSED, "long": UNABLE}},
            "One self-test passed, the other gave no result. The disk counts no new faults.",
        ),
        (
            {"writes": False, "results": []},
            "It was not written to. The self-tests passed. The disk counts no new faults.",
        ),
        (
            {"writes": False, "results": [], "before": {}},
            "It was not written to. The self-tests passed. The disk reports no figures that could be compared.",
        ),
    ],
)
def test_report_of_a_clean_disk_says_only_what_was_tested(web, changes, said):
    burn_ins_made.finished(**changes)
    verdict = text(web.get(f"/disks/burn-ins/{BURN_IN}/")).split('id="verdict"')[1].split("</section>")[0]
    assert said in verdict
    assert ("self-tests passed" in verdict) == (changes.get("tests", BOTH) == BOTH)
    assert ("no new faults" in verdict) == ("before" not in changes)


def test_report_of_a_bad_disk_names_and_draws_its_regions(web):
    bad = RegionResult(number=30, problem="read", at=400 * 10**9)
    slow = RegionResult(number=60, written=20 * 10**6, read=155 * 10**6)
    found = burn_ins_made.results(bad=bad, slow=slow)
    burn_ins_made.finished(
        verdict="failed", results=msgspec.to_builtins(found), findings=[["failed", "Region 31 could not be read back."]]
    )
    page = text(web.get(f"/disks/burn-ins/{BURN_IN}/"))
    assert "Do not use this disk" in page
    assert "could not be read back at byte 400000000000" in page
    assert page.count('class="mark-failed"') == page.count('class="mark-slow"') == 1
    assert "writing at 20 MB/s took" in page


def test_differences_of_the_drives_figures_are_shown(web):
    burn_ins_made.finished(before={"counts": {"crc": 3, "pending": 0}}, reading={"counts": {"crc": 5, "pending": 0}})
    page = text(web.get(f"/disks/burn-ins/{BURN_IN}/"))
    assert 'data-label="Before">3</td> <td class="number" data-label="After">5</td>' in page


def test_disks_page_lists_its_reports_by_serial_number(web):
    assert "Never tested here." in text(web.get(f"/disks/{KEY}/"))
    burn_ins_made.finished()
    assert f"/disks/burn-ins/{BURN_IN}/" in text(web.get(f"/disks/{KEY}/"))
    # The same disk in a case of another kind has another name and the same serial number.
    store.replace(DiskRow, [disk(1, path="/dev/disk/by-id/usb-Case_1-0:0")], lambda one: one.path.rsplit("/", 1)[-1])
    assert f"/disks/burn-ins/{BURN_IN}/" in text(web.get("/disks/usb-Case_1-0:0/"))


def test_wizard_says_whether_a_disk_was_tested_and_lets_it_be_used_all_the_same(web):
    burn_ins_made.finished(finished=timezone.now().replace(year=2026, month=3, day=3, hour=12))
    burn_ins_made.finished(number=2, pk=uuid.uuid4(), verdict="failed")
    burn_ins_made.made(3, pk=uuid.uuid4())
    page = text(web.get("/pools/new/", {"step": "disks", "name": "tank"}))
    assert "Tested 3 March 2026, clean." in page
    assert "and it failed." in page
    assert "Its burn-in has not ended." in page
    assert page.count("Never tested here.") == 1
    assert "disabled" not in page.split(path_of(2))[1].split("</label>")[0]


CLEAN, WATCH, FAILED = ({"verdict": verdict} for verdict in ("clean", "watch", "failed"))
TESTS_ONLY = {"writes": False, "results": []}
STOPPED = {"state": State.STOPPED, "verdict": ""}
RUNNING = {"state": State.RUNNING, "verdict": "", "finished": None}


@pytest.mark.parametrize(
    ("burn_ins", "said"),
    [
        ([FAILED, CLEAN], "Tested 3 March 2026, clean."),
        ([CLEAN, FAILED], "Tested 3 March 2026, and it failed."),
        ([STOPPED], "Tested 3 March 2026, but stopped before the end."),
        ([STOPPED, RUNNING], "Its burn-in has not ended."),
        # One without a verdict takes back no verdict.
        ([FAILED, STOPPED], "Tested 3 March 2026, and it failed."),
        ([FAILED, RUNNING], "Tested 3 March 2026, and it failed. Another burn-in has not ended."),
        # Self-tests alone replace no test that wrote, unless they found worse.
        ([CLEAN | TESTS_ONLY], "Tested 3 March 2026 without writing to it, clean."),
        ([FAILED | TESTS_ONLY, CLEAN | TESTS_ONLY], "Tested 3 March 2026 without writing to it, clean."),
        ([FAILED, CLEAN | TESTS_ONLY], "Tested 3 March 2026, and it failed."),
        ([CLEAN, CLEAN | TESTS_ONLY], "Tested 3 March 2026, clean."),
        ([CLEAN, FAILED | TESTS_ONLY], "Tested 3 March 2026 without writing to it, and it failed."),
        ([FAILED | TESTS_ONLY, CLEAN], "Tested 3 March 2026, clean."),
    ],
)
def test_choice_of_disks_says_the_verdict_that_counts(burn_ins, said):
    for changes in burn_ins:
        burn_ins_made.finished(
            **{"pk": uuid.uuid4(), "finished": timezone.now().replace(year=2026, month=3, day=3, hour=12), **changes}
        )
    bay = burn_in_report.with_burn_ins(read_box().bays)[0]
    assert bay.tested == said
    assert bay.test_failed == ("failed" in said)


def test_queries_do_not_grow_with_disks(web, django_assert_num_queries):
    rows.empty_box(9)
    for number in range(1, 9):
        burn_ins_made.finished(number=number, pk=uuid.uuid4())
    bays = read_box().bays
    with django_assert_num_queries(1):
        burn_in_report.with_burn_ins(bays)


def test_agent_out_of_reach_is_no_reason_to_think_a_disk_empty(web, monkeypatch):
    """The page then shows what the inventory knows; the agent looks again before every region."""
    monkeypatch.setattr(agent_client, "stream_replies", lambda *_args, **_more: iter(()))
    hold_data()
    assert start(web).status_code == 409


def test_opening_the_form_requests_fresh_facts(web, calm):
    assert web.get(PAGE).status_code == 200
    assert calm.count(("workers.collect",)) == 1


@pytest.mark.parametrize(
    ("rotational", "told", "limit"), [(True, None, 55), (False, None, 75), (False, 70, 70), (True, 0, 55)]
)
def test_report_names_the_limit_of_this_kind_of_disk(web, calm, rotational, told, limit):
    row = burn_ins_made.finished(rotational=rotational, reading={"counts": burn_ins_made.COUNTS, "limit": told})
    assert f"It should stay below {limit} °C." in text(web.get(f"/disks/burn-ins/{row.pk}/"))
