"""A replacement step by step: what the page says follows from the facts alone."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.facts.box import Pool, Scan, Vdev
from appliance.operation import Operation, as_json, kind_of
from appliance.pools.properties import SetPoolProperty
from appliance.pools.vdevs import online_offline
from appliance.pools.vdevs.clear_errors import ClearErrors
from appliance.pools.vdevs.expand import AddVdev
from appliance.pools.vdevs.replace import DetachDisk, ReplaceDisk
from tests.reasons import codes_on_page
from tests.unit.made import disk, path_of
from tests.unit.pools import shapes
from tests.web.disks import burn_ins_made
from tests.web.pools.test_topology import put, seen
from tests.web.reading import Page, text_of
from web.disks.models import Replacement
from web.inventory.box import read_box
from web.inventory.models import Activity, DiskRow, PoolRow, Progress
from web.jobs.models import Job
from web.pools import new_disk, replacement

WHICH = "/pools/7/replace/"


@pytest.fixture
def case(web, calm) -> Replacement:
    """The replacement of disk 2 in a raidz2 of four; bays 1 to 6 are known; 5 and 6 hold no disk."""
    seen(range(1, 7))
    put(shapes.raidz2(), 5, 6)
    assert web.post(WHICH, {"vdev": "102"}).status_code == 302
    return Replacement.objects.get()


def page(web, case: Replacement) -> Page:
    response = web.get(f"/pools/replacements/{case.pk}/")
    assert response.status_code == 200
    return Page(response)


def state(*states: str):
    return shapes.raidz2(*states)


def test_replacement_is_opened_once_however_often_it_is_sent(web, case):
    web.post(WHICH, {"vdev": "102"})
    web.post(WHICH, {"vdev": "102"})
    assert Replacement.objects.count() == 1
    assert (case.bay, case.serial) == ("bay 2", "WD-WCAZA0000002")
    assert set(case.known) == {path_of(number).rsplit("/")[-1] for number in (1, 3, 4)}
    assert not Job.objects.exists()


@pytest.mark.parametrize("vdev", ["", "x", "999", "50", "²", "-1"])
def test_disk_outside_the_pool_opens_no_replacement(web, calm, vdev):
    put(shapes.raidz2())
    response = web.post(WHICH, {"vdev": vdev})
    assert (response.status_code, codes_on_page(response)) == (409, ["disk-not-in-pool"])
    assert not Replacement.objects.exists()


def test_a_disk_in_use_is_taken_out_of_use_first(web, case):
    found = page(web, case)
    assert "Bay 2 (WDC WD20EARS-00MVWB0, serial WD-WCAZA0000002) is still in use." in found.text
    assert "Take bay 2 out of use" in found.text
    for _ in range(2):
        assert web.post(f"/pools/replacements/{case.pk}/offline/").status_code == 302
    (job,) = Job.objects.all()
    assert (job.kind, job.subject) == ("offline-disk", "tank")


def test_a_disk_that_cannot_be_spared_stays_until_the_new_one_is_filled(web, case):
    put(state("FAULTED", "ONLINE", "FAULTED", "ONLINE"), 6)
    found = page(web, case)
    assert "cannot do without it at the moment" in found.text
    assert "out of use first" not in found.text
    assert "Take bay 2 out of use" not in found.text
    assert "Use bay 5" in found.text
    response = web.post(f"/pools/replacements/{case.pk}/offline/")
    assert (response.status_code, codes_on_page(response)) == (409, ["vdev-not-redundant"])
    assert not Job.objects.exists()


def test_out_of_use_the_page_says_which_one_to_pull(web, case):
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 5, 6)
    found = page(web, case)
    assert "Pull out bay 2" in found.text
    assert "WD-WCAZA0000002" in found.text
    assert "Make its light blink" in found.text


def test_a_wrong_disk_is_noticed_and_nothing_goes_on_until_it_is_back(web, case):
    put(state("ONLINE", "OFFLINE", "REMOVED", "ONLINE"), 3, 6)
    found = page(web, case)
    assert "That was another disk: bay 3 (WDC WD20EARS-00MVWB0, serial WD-WCAZA0000003)." in found.text
    assert "Put it back into its bay now" in found.text
    assert "Use bay" not in found.text
    response = web.get(f"/pools/replacements/{case.pk}/accept/", {"disk": path_of(5)})
    assert (response.status_code, codes_on_page(response)) == (409, ["wrong-disk-pulled"])
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 5, 6)
    assert "Pull out bay 2" in page(web, case).text


def test_with_the_right_disk_out_it_waits_for_the_new_one(web, case):
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 5, 6)
    found = page(web, case)
    assert "The right disk is out. Put the new one into bay 2." in found.text


def test_a_free_disk_that_was_there_before_is_offered_and_not_called_new(web, calm):
    seen(range(1, 7))
    put(shapes.raidz2(), 6)
    web.post(WHICH, {"vdev": "102"})
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 6)
    found = page(web, Replacement.objects.get())
    assert (
        "Put the new one into bay 2. It appears here within some seconds, or choose one that is in the box"
        in found.text
    )
    assert "A new disk was found" not in found.text
    assert "Use bay 5" in found.text


def test_a_new_disk_is_shown_with_everything_for_and_against_it(web, case):
    DiskRow.objects.all().delete()
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 5, 6, disks=(disk(5), disk(6, size=10**12)))
    DiskRow.objects.filter(key=path_of(5).rsplit("/")[-1]).update(
        smart_passed=True, smart_text="It says that it works."
    )
    DiskRow.objects.filter(key=path_of(6).rsplit("/")[-1]).update(
        smart_passed=False, smart_text="It says itself that it is failing."
    )
    response = web.get(f"/pools/replacements/{case.pk}/")
    assert codes_on_page(response) == ["disk-too-small", "disk-failing"]
    found = Page(response)
    assert "A new disk was found" in found.text
    assert "It says that it works." in found.text
    assert "Use bay 5" in found.text
    assert "Use bay 6" not in found.text
    DiskRow.objects.filter(key=path_of(5).rsplit("/")[-1]).update(smart_passed=False)
    assert "Use bay 5" not in page(web, case).text
    review = Page(web.get(f"/pools/replacements/{case.pk}/accept/", {"disk": path_of(5)}))
    assert f"zpool replace -o ashift=12 -- tank 102 {path_of(5)}" in review.text
    assert review.form("/jobs/confirm/").data["back"] == f"/pools/replacements/{case.pk}/"


def test_a_new_disk_is_shown_with_whether_it_was_tested_here(web, case):
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 5, 6, disks=(disk(5), disk(6)))
    DiskRow.objects.update(smart_passed=True, smart_text="It says that it works.")
    assert [one.partition("works. ")[2] for one in candidates(web, case)] == [
        "Never tested here. Use bay 5",
        "Never tested here. Use bay 6",
    ]
    third = timezone.now().replace(year=2026, month=3, day=3, hour=12)
    burn_ins_made.finished(number=5, finished=third)
    burn_ins_made.finished(number=6, pk=uuid.uuid4(), finished=third, verdict="failed")
    # One that failed is a warning: the owner may use it all the same.
    assert [one.partition("works. ")[2] for one in candidates(web, case)] == [
        "Tested 3 March 2026, clean. Use bay 5",
        "[warning] Tested 3 March 2026, and it failed. Use bay 6",
    ]


def test_a_new_disk_that_failed_its_burn_in_is_not_proposed(web, case):
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 5, 6, disks=(disk(5),))
    assert "A new disk was found" in page(web, case).text
    burn_ins_made.finished(number=5, verdict="failed")
    assert "A new disk was found" not in page(web, case).text
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 5, 6, disks=(disk(5), disk(6)))
    assert [one[-9:] for one in candidates(web, case)] == ["Use bay 6", "Use bay 5"]


def candidates(web, case: Replacement) -> list[str]:
    """What the page says of each disk that could take over."""
    source = web.get(f"/pools/replacements/{case.pk}/").content.decode()
    found = re.findall(r'<li class="candidate">(.*?)</li>', source, re.DOTALL)
    marked = [one.replace('<span class="choice-reason choice-warning"', "[warning] <span") for one in found]
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in marked]


def test_a_disk_that_is_too_small_is_refused_in_the_review_too(web, case):
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 5, 6, disks=(disk(6, size=10**12),))
    response = web.get(f"/pools/replacements/{case.pk}/accept/", {"disk": path_of(6)})
    assert (response.status_code, codes_on_page(response)) == (409, ["disk-too-small"])


def rebuilding(new: str = "ONLINE", scan: Scan | None = shapes.RESILVER):
    change = shapes.group(
        "replacing-1",
        shapes.leaf(2, "OFFLINE"),
        shapes.leaf(5, new, processed=10),
        guid=61,
        kind="replacing",
        state="DEGRADED",
    )
    return shapes.pool(shapes.group("raidz2-0", shapes.leaf(1), change, shapes.leaf(3), shapes.leaf(4)), scan=scan)


def test_while_it_rebuilds_the_page_says_what_the_pool_still_survives(web, case):
    put(rebuilding(), 2, 6)
    found = page(web, case)
    assert "Bay 5 (WDC WD20EARS-00MVWB0 WD-WCAZA0000005) is being rebuilt." in found.text
    assert "tank survives 1 more failed disk." in found.text


@pytest.mark.parametrize("state", Activity.UNDER_WAY)
def test_while_it_rebuilds_the_page_shows_how_far_it_is(web, case, state):
    put(rebuilding(), 2, 6)
    Activity.objects.create(
        key="7-resilver-1",
        pool="tank",
        pool_key="7",
        kind="resilver",
        state=state,
        percent=37,
        seen=timezone.now(),
        phrase="2 h left",
    )
    found = page(web, case)
    assert "37 %, files stay available" in found.text
    assert "2 h left" in found.text


def test_a_second_failure_while_it_rebuilds_is_said_with_what_to_do(web, case):
    pool = rebuilding()
    weak = replace(
        pool, vdevs=(replace(pool.vdevs[0], children=(shapes.leaf(1, "REMOVED"), *pool.vdevs[0].children[1:])),)
    )
    put(weak, 1, 2, 6)
    found = page(web, case)
    assert "Another disk is missing while" in found.text
    assert "bay 1" in found.text
    assert "do not pull anything else" in found.text
    assert "one more failed disk would lose data" in text_of(web.get("/pools/7/"))


def test_a_new_disk_that_fails_as_well_can_be_stopped_and_another_put_in(web, case):
    put(rebuilding("FAULTED"), 2, 6)
    found = page(web, case)
    assert "has failed as well" in found.text
    hrefs = [attributes.get("href") for tag, attributes in found.elements if tag == "a"]
    assert "/pools/7/vdev/105/detach/" in hrefs


def two_at_once(*members: Vdev, scan: Scan | None = shapes.RESILVER) -> Pool:
    return shapes.pool(shapes.group("raidz2-0", *members), scan=scan)


def swapping(number: int, new: int, state: str = "ONLINE") -> Vdev:
    """Disk ``new`` taking the place of disk ``number``."""
    pair = (shapes.leaf(number, "OFFLINE"), shapes.leaf(new, state, processed=10))
    return shapes.group(f"replacing-{number}", *pair, guid=60 + number, kind="replacing", state="DEGRADED")


@pytest.fixture
def other(web, case) -> Replacement:
    """A second guide beside the first: the replacement of disk 3."""
    assert web.post(WHICH, {"vdev": "103"}).status_code == 302
    return Replacement.objects.get(vdev_guid="103")


def stops(found: Page) -> set[str]:
    hrefs = {attributes.get("href") or "" for tag, attributes in found.elements if tag == "a"}
    return {href for href in hrefs if href.endswith("/detach/")}


def test_each_of_two_guides_names_the_disk_in_its_own_place(web, case, other):
    put(two_at_once(shapes.leaf(1), swapping(2, 5), swapping(3, 6, "FAULTED"), shapes.leaf(4)), 2, 3)
    first, second = page(web, case), page(web, other)
    assert "Bay 5 (WDC WD20EARS-00MVWB0 WD-WCAZA0000005) is being rebuilt." in first.text
    assert "bay 6 (WDC WD20EARS-00MVWB0 WD-WCAZA0000006) has failed as well." in second.text
    assert (stops(first), stops(second)) == (set(), {"/pools/7/vdev/106/detach/"})


def test_a_guide_whose_disk_has_no_new_one_yet_does_not_take_that_of_another(web, case, other):
    put(two_at_once(shapes.leaf(1), shapes.leaf(2, "OFFLINE"), swapping(3, 6), shapes.leaf(4)), 3, 5)
    assert "Pull out bay 2" in page(web, case).text


def test_a_disk_that_another_guide_replaces_is_not_called_pulled_by_mistake(web, case, other):
    put(state("ONLINE", "OFFLINE", "OFFLINE", "ONLINE"), 2, 3)
    assert "That was another disk" not in page(web, case).text
    assert web.get(f"/pools/replacements/{case.pk}/accept/", {"disk": path_of(5)}).status_code == 200
    assert web.post(f"/pools/replacements/{other.pk}/close/").status_code == 302
    assert "That was another disk: bay 3" in page(web, case).text


def test_the_new_disk_is_remembered_after_the_old_one_has_left(web, case, other):
    """As the collector sees it: each took its place, and then the first was done."""
    put(two_at_once(shapes.leaf(1), swapping(2, 5), swapping(3, 6), shapes.leaf(4)), 2, 3)
    new_disk.note_new_disks([row.fact for row in PoolRow.objects.all()])
    put(two_at_once(shapes.leaf(1), shapes.leaf(5), swapping(3, 6), shapes.leaf(4), scan=None), 2, 3)
    new_disk.note_new_disks([row.fact for row in PoolRow.objects.all()])
    case.refresh_from_db()
    other.refresh_from_db()
    assert (case.new_guid, other.new_guid) == ("105", "106")
    done = two_at_once(shapes.leaf(1), shapes.leaf(5), shapes.leaf(6), shapes.leaf(4), scan=None)
    put(done, 2, 3)
    assert "was replaced by bay 5" in page(web, case).text
    assert "was replaced by bay 6" in page(web, other).text


def test_the_accepted_disk_is_known_where_nobody_saw_the_rebuild(web, case, other):
    """A small pool is rebuilt between two readings."""
    done = two_at_once(shapes.leaf(1), shapes.leaf(5), shapes.leaf(6), shapes.leaf(4), scan=None)
    for vdev, number in ((102, 5), (103, 6)):
        put(shapes.raidz2(), count=6)
        job_of(ReplaceDisk(pool="tank", vdev=vdev, disk=path_of(number)), state=Job.State.DONE)
    put(done, 2, 3)
    assert "was replaced by bay 5" in page(web, case).text
    assert "was replaced by bay 6" in page(web, other).text


def test_of_two_new_disks_that_nobody_accepted_here_none_is_named_unless_the_other_is_known(web, case, other):
    """Both were replaced at the shell while Larder did not look."""
    put(two_at_once(shapes.leaf(1), shapes.leaf(5), shapes.leaf(6), shapes.leaf(4), scan=None), 2, 3)
    assert "was replaced by" not in page(web, case).text
    Replacement.objects.filter(pk=other.pk).update(new_guid="105")
    assert "was replaced by bay 6" in page(web, case).text


@pytest.mark.parametrize("state", ["FAULTED", "REMOVED", "UNAVAIL", "OFFLINE"])
@pytest.mark.parametrize("scan", [None, shapes.RESILVER])
def test_a_new_disk_that_fails_once_it_is_in_place_is_not_called_being_rebuilt(web, case, state, scan):
    members = (shapes.leaf(1), shapes.leaf(5, state), shapes.leaf(3), shapes.leaf(4))
    put(two_at_once(*members, scan=scan), 2, 6)
    found = page(web, case)
    assert "still being rebuilt" not in found.text
    assert "had taken the place of the old disk" in found.text
    hrefs = {attributes.get("href") for tag, attributes in found.elements if tag == "a"}
    assert "/pools/7/replace/?vdev=105" in hrefs
    assert web.post(f"/pools/replacements/{case.pk}/close/").status_code == 302
    case.refresh_from_db()
    assert "was replaced by bay 5" in case.report
    assert "Nothing was lost" not in case.report


def test_a_new_disk_that_is_degraded_is_not_called_being_rebuilt_for_good(web, case):
    """ZED calls a disk so after too many checksum errors; it stays in the pool."""
    put(rebuilt(state="DEGRADED"), 2, 6)
    found = page(web, case)
    assert "still being rebuilt" not in found.text
    assert "is in place, but tank is not healthy." in found.text


def test_a_new_disk_whose_rebuild_waits_is_not_called_complete(web, case):
    put(rebuilt(deferred=True), 2, 6)
    assert "still being rebuilt" in page(web, case).text


def test_a_report_does_not_take_the_figures_of_another_disks_rebuilding(web, case):
    pool = rebuilt()
    assert pool.scan
    put(replace(pool, scan=replace(pool.scan, repaired=0), errors=3), 2, 6)
    said = page(web, case).text
    assert "Rebuilding took" not in said
    assert "3 errors were left." in said
    assert "Nothing was lost" not in said


def rebuilt(**changes):
    ended = timezone.now() + timedelta(minutes=90)
    scan = Scan("resilver", "finished", ended - timedelta(minutes=30), ended, 10**9, 10**9, 10**9, 0, repaired=10**8)
    members = (shapes.leaf(1), shapes.leaf(5, **changes), shapes.leaf(3), shapes.leaf(4))
    return shapes.pool(shapes.group("raidz2-0", *members), scan=scan)


def test_the_end_is_a_report_that_is_kept(web, case):
    put(rebuilt(), 2, 6)
    found = page(web, case)
    assert "tank is complete again." in found.text
    assert "Rebuilding took 30 min" in found.text
    assert "Nothing was lost. tank survives 2 more failed disks." in found.text
    for status in (302, 404):
        assert web.post(f"/pools/replacements/{case.pk}/close/").status_code == status
    put(shapes.raidz2())
    assert "Rebuilding took 30 min" in text_of(web.get(f"/pools/replacements/{case.pk}/"))
    assert "Rebuilding took 30 min" in text_of(web.get("/pools/replacements/"))
    assert not Job.objects.exists()


def test_a_new_disk_with_errors_of_its_own_is_not_called_well(web, case):
    put(rebuilt(checksum_errors=4), 2, 6)
    found = page(web, case)
    assert "tank is complete again" not in found.text
    assert "has errors already: 4 checksum errors" in found.text


def test_a_pool_that_is_gone_is_said_and_the_guidance_can_be_closed(web, case):
    from tests.web import rows

    rows.put(pools=[])
    assert "tank is not in use on this box" in page(web, case).text
    assert web.post(f"/pools/replacements/{case.pk}/close/").status_code == 302
    assert "Closed before it was complete" in Replacement.objects.get().report


def test_estimate_of_the_rebuild_is_for_a_replacement_that_is_still_to_come(web, case):
    assert "an estimate" in page(web, case).text
    web.post(f"/pools/replacements/{case.pk}/close/")
    assert "an estimate" not in page(web, case).text


def test_after_closing_the_same_disk_can_be_replaced_again(web, case):
    web.post(f"/pools/replacements/{case.pk}/close/")
    web.post(WHICH, {"vdev": "102"})
    assert Replacement.objects.count() == 2
    assert Replacement.objects.filter(closed=None).count() == 1


def test_the_pool_page_leads_on_with_a_replacement_that_is_open_and_says_whether_its_disk_is_in_use(web, case):
    words = text_of(web.get("/pools/7/"))
    assert "was begun, and the disk is in use." in words
    assert "Continue or stop" in words
    put(shapes.raidz2("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 6)
    words = text_of(web.get("/pools/7/"))
    assert "is being replaced." in words
    assert "Continue the replacement" in words


def test_the_pool_page_does_not_call_a_replacement_under_way_that_is_over(web, case):
    page(web, case)
    put(rebuilt(), 2, 6)
    words = text_of(web.get("/pools/7/"))
    assert "is being replaced" not in words
    assert "is no longer part of tank. Read what was done, and close the replacement. Read the report" in words
    web.post(f"/pools/replacements/{case.pk}/close/")
    assert "Read the report" not in text_of(web.get("/pools/7/"))


@pytest.mark.parametrize("changes", [{"deferred": True}, {"state": "UNAVAIL"}], ids=["waits to be rebuilt", "gone"])
def test_a_replacement_is_not_over_before_the_new_disk_has_all_its_data(web, case, changes):
    Replacement.objects.update(new_guid="105")
    put(rebuilt(**changes), 2, 6)
    assert "tank is complete again" not in page(web, case).text
    for path in ("/pools/7/", "/pools/replacements/"):
        words = text_of(web.get(path))
        assert "is being replaced." in words and "Continue the replacement" in words
        assert "Read what was done" not in words


def test_the_list_says_of_each_replacement_what_the_page_of_its_pool_says(web, case):
    def listed() -> str:
        return text_of(web.get("/pools/replacements/"))

    assert "was begun, and the disk is in use." in listed()
    put(shapes.raidz2("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 6)
    assert "is being replaced." in listed() and "Pool tank, begun" in listed()
    put(rebuilt(), 2, 6)
    assert "is being replaced" not in listed()
    assert "is no longer part of tank. Read what was done, and close the replacement." in listed()
    web.post(f"/pools/replacements/{case.pk}/close/")
    assert "No disk is being replaced at the moment." in listed()


def test_a_pool_that_is_not_there_is_told_from_one_that_cannot_be_read(web, case):
    pages = ("/pools/replacements/", f"/pools/replacements/{case.pk}/")
    PoolRow.objects.update(facts="{")
    for words in (text_of(web.get(path)) for path in pages):
        assert "tank cannot be shown. What Larder stored of it cannot be read." in words
        assert "not in use on this box" not in words
    PoolRow.objects.all().delete()
    for words in (text_of(web.get(path)) for path in pages):
        assert "tank is not in use on this box. Import it again to continue, or close this." in words


def test_a_disk_long_gone_is_replaced_from_the_bay_where_it_was(web, calm):
    seen(range(1, 7))
    put(shapes.raidz2("ONLINE", "UNAVAIL", "ONLINE", "ONLINE"), 2, 6)
    web.post(WHICH, {"vdev": "102"})
    found = Replacement.objects.get()
    assert (found.bay, found.serial, found.model) == ("bay 2", "WD-WCAZA0000002", "WDC WD20EARS-00MVWB0")
    now = replacement.replacement_state(found, read_box())
    assert (now.step, [one.bay.number for one in now.candidates]) == ("accept", [5])


def test_a_disk_that_larder_knows_by_another_name_is_not_called_out(web, calm):
    odd = shapes.leaf(2, "OFFLINE", path="/dev/disk/by-id/wwn-0x5-part1", name="wwn-0x5")
    put(shapes.pool(shapes.group("mirror-0", shapes.leaf(1), odd)))
    web.post(WHICH, {"vdev": "102"})
    now = replacement.replacement_state(Replacement.objects.get(), read_box())
    assert now.step == "pull"
    assert "cannot see whether the right one" in now.text


def step_now(response) -> str:
    """The title of the step that the page marks as the current one."""
    found = re.search(r'aria-current="step">(.*?)</li>', response.content.decode(), re.DOTALL)
    return found[1].strip() if found else ""


def confirmed(web, case: Replacement) -> str:
    """Accept the disk in bay 5; where the confirmation leads."""
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 6)
    review = Page(web.get(f"/pools/replacements/{case.pk}/accept/", {"disk": path_of(5)}))
    return str(web.post("/jobs/confirm/", review.form("/jobs/confirm/").data)["Location"])


def test_steps_are_visible_from_which_disk_to_finished(web, case):
    assert step_now(web.get(WHICH)) == "Choose the disk"
    here = f"/pools/replacements/{case.pk}/"
    assert step_now(web.get(here)) == "Take it out of use"
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 5, 6)
    assert step_now(web.get(here)) == "Pull it out"
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 6)
    assert step_now(web.get(here)) == "Put the new one in"
    assert step_now(web.get(f"{here}accept/", {"disk": path_of(5)})) == "Put the new one in"


def test_job_is_followed_on_the_page_of_the_replacement(web, case):
    here = f"/pools/replacements/{case.pk}/"
    assert confirmed(web, case) == here
    job = Job.objects.get()
    Progress.objects.create(job=job.pk, percent=25)
    found = page(web, case)
    assert "Replace a disk of tank" in found.text
    assert "25 %" in found.text
    assert "Use bay 5" not in found.text, "nothing else is asked for meanwhile"
    assert found.form(f"/jobs/{job.pk}/stop/")


def test_failed_job_is_told_on_the_page_of_the_replacement_with_a_way_on(web, case):
    confirmed(web, case)
    Job.objects.update(state=Job.State.FAILED, text="The disk does not answer.", finished=timezone.now())
    found = page(web, case)
    assert "Replace a disk of tank: failed. The disk does not answer." in found.text
    assert "See what happened" in found.text
    assert "Use bay 5" in found.text


def job_of(operation: Operation, **changes) -> Job:
    made = {"kind": kind_of(operation), "title": operation.title, "subject": operation.subject, "created_by": "admin"}
    return Job.objects.create(**{**made, "operation": as_json(operation), "state": Job.State.FAILED, **changes})


def test_job_of_another_time_is_not_told(web, case):
    job = job_of(ReplaceDisk(pool="tank", vdev=102, disk=path_of(5)))
    assert "See what happened" in page(web, case).text
    Job.objects.filter(pk=job.pk).update(created=case.begun - timedelta(minutes=1))
    assert "See what happened" not in page(web, case).text


@pytest.mark.parametrize(
    "operation",
    [
        SetPoolProperty(pool="tank", name="comment", value="a"),
        ReplaceDisk(pool="tank", vdev=103, disk=path_of(6)),
        online_offline.OfflineDisk(pool="tank", vdev=103),
        ClearErrors(pool="tank"),
        # Of a pool in the middle of such work; its subject says nothing else.
        AddVdev(pool="tank", layout="mirror", disks=(path_of(5), path_of(6))),
    ],
)
def test_a_job_of_the_pool_that_is_not_of_this_replacement_is_not_followed(web, case, operation):
    put(state("ONLINE", "OFFLINE", "ONLINE", "ONLINE"), 2, 6)
    job_of(operation)
    job_of(operation, state=Job.State.RUNNING)
    found = page(web, case)
    assert "See what happened" not in found.text
    assert "Use bay 5" in found.text


def test_an_own_job_is_followed_although_another_of_the_pool_came_later(web, case):
    put(rebuilding("FAULTED"), 2, 6)
    for own in (
        online_offline.OfflineDisk(pool="tank", vdev=102),
        online_offline.OnlineDisk(pool="tank", vdev=102),
        DetachDisk(pool="tank", vdev=105),  # stopping with the new disk
    ):
        Job.objects.all().delete()
        job_of(own)
        job_of(SetPoolProperty(pool="tank", name="comment", value="a"), state=Job.State.RUNNING)
        assert f"{own.title}: failed." in page(web, case).text
