"""The pool page's tree and what it advises; the pages that lead to a change of a pool's shape; the bays."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import agent_client
from appliance.errors import Failed
from appliance.facts.box import Disk, LongWork, Pool, Use
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset
from tests.reasons import codes_on_page
from tests.unit.made import OLD, dataset, disk, path_of
from tests.unit.pools import shapes
from tests.web import rows
from tests.web.disks import burn_ins_made
from tests.web.reading import Page, text_of
from web.disks import ports
from web.disks.burn_in_report import with_burn_ins
from web.disks.models import BayRow
from web.inventory.bays import MissingDisk
from web.inventory.box import read_box
from web.inventory.models import DiskRow
from web.jobs.models import Job

POOL = "/pools/7/"
CONFIRM = "/jobs/confirm/"


def put(pool: Pool, *absent: int, disks: tuple[Disk, ...] = (), count: int = 6) -> None:
    """The inventory with that pool, made up; every disk in a port of its own."""
    facts = shapes.facts(pool, *absent, disks=disks, count=count)
    placed = [replace(one, slot=f"pci-0000:00:0{one.serial[-1]}.0-ata-1") for one in facts.disks]
    rows.put(pools=[pool], datasets=[], disks=placed, accounts=[], shares=[])


def links(page: Page) -> set[str]:
    return {found["href"] for tag, found in page.elements if tag == "a" and found.get("href", "").startswith(POOL)}


def seen(disks: Iterable[int]) -> None:
    """The bays as a collector remembers them."""
    ports.remember_ports(disk(number, slot=f"pci-0000:00:0{number}.0-ata-1") for number in disks)


# --- what is locked -----------------------------------------------------------------------------------------------
def locked_folder(name: str, **changes: Any) -> Dataset:
    return dataset(
        name, encryption="aes-256-gcm", key_status="unavailable", encryption_root=name, mounted=False, **changes
    )


def test_folder_that_is_locked_is_told_however_many_stand_before_it_and_no_copy_is(web, calm):
    put(shapes.raidz2())
    many = [dataset(f"tank/a{number:03}") for number in range(220)]
    copy = locked_folder("tank/backups/x", copy_of=CopyMark(7, raw=True).text)
    rows.put(
        datasets=[
            dataset("tank"),
            *many,
            copy,
            locked_folder("tank/z"),
            locked_folder("tank/y", kind="volume"),
            locked_folder("other/z"),
        ]
    )
    text = text_of(web.get(POOL))
    assert "tank/z is locked. Its files can be reached once you unlock it." in text
    assert "tank/y is locked. It can be used once you unlock it." in text
    assert "tank/backups/x is locked" not in text and "other/z" not in text


def test_many_locked_folders_are_counted_and_unlocked_at_once(web, calm):
    put(shapes.raidz2())
    rows.put(datasets=[dataset("tank"), *(locked_folder(f"tank/z{number}") for number in range(9))])
    page = web.get(POOL)
    assert "tank/z4 is locked" in text_of(page) and "tank/z5 is locked" not in text_of(page)
    assert "4 more are locked." in text_of(page)
    assert 'href="/folders/unlock-all/"' in page.content.decode()


# --- the tree -----------------------------------------------------------------------------------------------------
def test_a_row_offers_what_can_be_done_to_it(web, calm):
    put(shapes.raidz2("OFFLINE", "ONLINE", "ONLINE", "ONLINE"))
    found = links(Page(web.get(POOL)))
    assert f"{POOL}vdev/101/online/" in found
    assert f"{POOL}vdev/101/offline/" not in found
    assert f"{POOL}vdev/102/offline/" in found
    assert f"{POOL}replace/?vdev=101" in found
    assert f"{POOL}add/expand/?vdev=50" in found
    assert f"{POOL}add/group/" in found
    assert f"{POOL}vdev/101/detach/" not in found


def test_a_spare_that_stands_in_can_go_back_or_stay(web, calm):
    put(shapes.spared("ONLINE"))
    page = Page(web.get(POOL))
    assert "Give the spare back" in page.text
    assert "the spare is not needed any more" in page.text
    assert f"{POOL}vdev/105/detach/" in links(page)
    assert "spare stands in" in text_of(web.get(POOL))


def failing_spared(original: str, **counts: int) -> Pool:
    pool = shapes.spared(original)
    first, standing = pool.vdevs[0].children
    standing = replace(standing, children=(replace(standing.children[0], **counts), standing.children[1]))
    return replace(pool, vdevs=(replace(pool.vdevs[0], children=(first, standing)), *pool.vdevs[1:]))


@pytest.mark.parametrize(
    ("original", "counts", "said"),
    [
        ("DEGRADED", {}, "is degraded; a spare stands in."),
        ("DEGRADED", {"checksum_errors": 20}, "is degraded; a spare stands in."),
        ("ONLINE", {"checksum_errors": 20}, "has errors; a spare stands in."),
    ],
)
def test_the_spare_of_a_disk_that_fails_is_not_advised_to_be_given_back(web, calm, original, counts, said):
    """ZED calls a disk DEGRADED after too many checksum errors, and ZFS goes on using it."""
    put(failing_spared(original, **counts))
    page = Page(web.get(POOL))
    assert "is not needed any more" not in page.text
    assert said in page.text
    assert f"{POOL}replace/?vdev=102" in links(page)


def test_the_spare_of_a_disk_that_reports_failing_is_not_advised_to_be_given_back(web, calm):
    put(shapes.spared("ONLINE"))
    said = "It says itself that it is failing."
    DiskRow.objects.filter(key=path_of(2).rsplit("/")[-1]).update(verdict="failing", smart_text=said)
    text = text_of(web.get(POOL))
    assert "is not needed any more" not in text
    assert "is failing; a spare stands in. It says itself that it is failing." in text


def test_a_disk_whose_rebuild_waits_is_told_so(web, calm):
    members = (shapes.leaf(1), shapes.leaf(2), shapes.leaf(3, deferred=True), shapes.leaf(4, processed=10))
    put(shapes.pool(shapes.group("raidz2-0", *members), scan=shapes.RESILVER))
    text = text_of(web.get(POOL))
    assert "waits to be rebuilt" in text
    words = {bay.number: bay.word for bay in read_box().bays}
    assert words == {1: "healthy", 2: "healthy", 3: "waits to be rebuilt", 4: "rebuilding", 5: "free", 6: "free"}


# --- names that ZFS has for a disk and Larder has not -------------------------------------------------------------
WWN = shapes.leaf(1, path="/dev/disk/by-id/wwn-0x50014ee1-part1", disk=path_of(1))


def test_a_disk_that_its_pool_knows_by_another_name_is_in_its_bay_and_in_use(web, calm):
    put(shapes.pool(shapes.group("mirror-0", WWN, shapes.leaf(2, path="/dev/sdb1", disk=path_of(2)))))
    box = read_box()
    assert [(bay.pool, bay.role, bay.state) for bay in box.bays[:2]] == [("tank", "normal", "healthy")] * 2
    assert "Bay 1" in text_of(web.get(POOL))
    assert "wwn-" not in text_of(web.get(POOL))


@pytest.mark.parametrize("role", ["normal", "log", ""])
def test_the_page_of_a_disk_says_its_role_or_none(web, calm, role):
    member = (
        replace(WWN, role=role or "normal") if role else shapes.leaf(1, path="/dev/disk/by-id/wwn-0x50014ee1-part1")
    )
    put(shapes.pool(member), disks=(disk(1, uses=(Use("pool", "is part of the pool tank", "7", "tank"),)),))
    said = text_of(web.get(f"/disks/{path_of(1).rpartition('/')[2]}/"))
    assert {"normal": "Part of the pool tank", "log": "The log of the pool tank", "": "It is part of the pool tank."}[
        role
    ] in said
    assert "The of the pool" not in " ".join(said.split())


def test_of_a_missing_disk_with_a_kernel_name_it_is_not_said_that_it_is_in_the_box(web, calm):
    gone = shapes.leaf(1, "UNAVAIL", name="sdc1", path="/dev/sdc1")
    put(shapes.pool(shapes.group("mirror-0", gone, shapes.leaf(2))), 1)
    page = Page(web.get(POOL))
    assert "may not be in the box" in page.text
    assert "in the box again" not in page.text
    assert f"{POOL}vdev/101/online/" in links(page)


def test_a_missing_disk_with_a_kernel_name_is_named_as_zfs_stored_it(web, calm):
    gone = shapes.leaf(1, "UNAVAIL", name="sdc1", path="/dev/sdc1", disk=path_of(1))
    put(shapes.pool(shapes.group("mirror-0", gone, shapes.leaf(2))), 1)
    page = Page(web.get(POOL))
    assert "WD-WCAZA0000001" in page.text
    assert "is missing." in page.text


# --- what is offered ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "offered"), [("mirror", True), ("raidz", False), ("draid", False)])
def test_a_special_group_is_offered_to_be_taken_out_only_of_a_pool_without_parity(web, calm, kind, offered):
    special = shapes.group("mirror-1", shapes.leaf(3), shapes.leaf(4), role="special", guid=52)
    log = shapes.leaf(5, role="log", guid=300)
    put(shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2), kind=kind), special, log))
    found = links(Page(web.get(POOL)))
    assert (f"{POOL}vdev/52/remove/" in found) is offered
    assert f"{POOL}vdev/300/remove/" in found
    assert f"{POOL}vdev/50/remove/" not in found


def test_every_link_of_every_menu_leads_somewhere(web, calm):
    log = shapes.leaf(6, role="log", guid=300, checksum_errors=1)
    pair = shapes.group("mirror-1", shapes.leaf(3), shapes.leaf(4, size=3 * 10**12), guid=51, expandable=10**12)
    first = shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2, "OFFLINE"))
    for pool in (shapes.pool(first, pair, log), shapes.spared(), shapes.replacing(), shapes.single()):
        put(pool)
        found = links(Page(web.get(POOL)))
        assert found
        for url in found - {POOL}:
            response = web.get(url)
            assert response.status_code in {200, 409}, url
            if response.status_code == 409:
                assert "Nothing was changed" in text_of(response), url


def test_a_small_act_is_reviewed_confirmed_and_made_a_job(web, calm):
    put(shapes.raidz2())
    page = Page(web.get(f"{POOL}vdev/102/offline/"))
    assert "zpool offline -- tank 102" in page.text
    assert web.post(CONFIRM, page.form(CONFIRM).data).status_code == 302
    job = Job.objects.get()
    assert (job.kind, job.subject) == ("offline-disk", "tank")


def test_of_two_who_confirm_two_plans_at_once_the_second_is_shown_a_new_one(web, calm):
    """Made up: the first job has run between the second's review and its confirmation."""
    put(shapes.raidz2())
    accept = f"{POOL}add/spare/?answered=yes&disks="
    first, second = Page(web.get(accept + path_of(5))), Page(web.get(accept + path_of(6)))
    assert web.post(CONFIRM, first.form(CONFIRM).data).status_code == 302
    put(shapes.pool(*shapes.raidz2().vdevs, shapes.leaf(5, "AVAIL", role="spare")))
    response = web.post(CONFIRM, second.form(CONFIRM).data)
    assert response.status_code == 409
    assert "Something changed" in text_of(response)
    assert Job.objects.count() == 1


@pytest.mark.parametrize("url", ["vdev/101/destroy/", "vdev/101/../", "add/everything/", "vdev/-1/offline/"])
def test_unknown_act_has_no_page(web, calm, url):
    put(shapes.raidz2())
    assert web.get(f"{POOL}{url}").status_code == 404
    assert web.get(f"/pools/8/{url}").status_code == 404


@pytest.mark.parametrize(
    ("guid", "code"),
    [("0", "vdev-missing"), ("999", "vdev-missing"), (str(2**64), "vdev-number"), ("9" * 400, "vdev-number")],
)
def test_a_vdev_that_is_not_there_is_refused(web, calm, guid, code):
    put(shapes.raidz2())
    response = web.get(f"{POOL}vdev/{guid}/offline/")
    assert response.status_code == 409
    assert codes_on_page(response) == [code]


# --- adding disks ---------------------------------------------------------------------------------------------------
def test_expanding_says_what_it_yields_before_a_disk_is_chosen_and_in_the_review(web, calm):
    put(shapes.raidz2())
    text = text_of(web.get(f"{POOL}add/expand/?vdev=50"))
    assert "Space for files now about 3.75 TB" in text
    assert "With one more disk about 4.71 TB" in text
    review = text_of(web.get(f"{POOL}add/expand/?vdev=50&answered=yes&disks={path_of(5)}"))
    assert f"zpool attach -o ashift=12 -- tank raidz2-0 {path_of(5)}" in review
    assert "cannot be undone" in review


def test_without_a_disk_it_asks_again(web, calm):
    put(shapes.raidz2())
    response = web.get(f"{POOL}add/spare/?answered=yes")
    assert response.status_code == 400
    assert codes_on_page(response) == ["disk-not-chosen"]


def test_less_protection_has_to_be_agreed_to(web, calm):
    put(shapes.raidz2())
    answers = f"{POOL}add/group/?answered=yes&layout=mirror&disks={path_of(5)}&disks={path_of(6)}"
    response = web.get(answers)
    assert response.status_code == 400
    assert codes_on_page(response) == ["protection-lowered"]
    assert any(found.get("name") == "less_protection" for _tag, found in Page(response).elements)
    assert web.get(f"{answers}&less_protection=on").status_code == 200
    assert not Job.objects.exists()


def test_adding_a_disk_with_data_needs_the_typed_name(web, calm):
    put(shapes.raidz2(), 5, disks=(disk(5, uses=(OLD,), content=("sde1",)),))
    page = Page(web.get(f"{POOL}add/spare/?answered=yes&disks={path_of(5)}"))
    assert "ext4 data called photos" in page.text
    assert web.post(CONFIRM, page.form(CONFIRM).data).status_code == 400
    assert not Job.objects.exists()


# --- bad days -------------------------------------------------------------------------------------------------------
def test_a_stopped_pool_says_which_disks_to_bring_back_and_then_how_to_start_it(web, calm):
    stopped = replace(shapes.raidz2("REMOVED", "REMOVED", "REMOVED", "ONLINE"), state="SUSPENDED")
    put(stopped, 1, 2, 3)
    page = Page(web.get(POOL))
    assert "Put the missing disks back" in page.text
    assert "WD-WCAZA0000002" in page.text
    assert f"{POOL}vdev/7/clear/" not in links(page)
    assert codes_on_page(web.get(f"{POOL}vdev/7/clear/")) == ["disks-not-here"]
    put(stopped, 1)
    page = Page(web.get(POOL))
    assert "Start tank again" in page.text
    review = web.get(f"{POOL}vdev/7/clear/")
    assert "zpool clear -- tank" in text_of(review)


def test_a_stopped_pool_with_encrypted_copies_is_not_offered_to_start_again(web, calm):
    """Where a receive of encrypted blocks was cut off, ``zpool clear`` panics the kernel (OpenZFS 2.3.9)."""
    put(replace(shapes.raidz2("REMOVED", "REMOVED", "REMOVED", "ONLINE"), state="SUSPENDED"), 1)
    rows.put(datasets=[dataset("tank/backups/secret", copy_of=CopyMark(7, raw=True).text)])
    page = Page(web.get(POOL))
    assert "Start tank again" not in page.text and "then restart the box" in page.text
    assert f"{POOL}vdev/7/clear/" not in links(page)
    assert codes_on_page(web.get(f"{POOL}vdev/7/clear/")) == ["pool-needs-restart"]


def test_growing_that_waits_with_all_disks_back_is_let_go_on_by_one_click(web, calm):
    stands = (LongWork("expand", "waiting", datetime(2026, 11, 21, tzinfo=UTC), None, 99, 100),)
    put(replace(shapes.raidz2(), work=stands))
    page = Page(web.get(POOL))
    assert "Growing tank is paused, although all its disks are back." in page.text
    assert f"{POOL}vdev/7/clear/" in links(page)
    assert "zpool clear -- tank" in text_of(web.get(f"{POOL}vdev/7/clear/"))
    put(replace(shapes.raidz2("ONLINE", "REMOVED", "ONLINE", "ONLINE"), work=stands), 2)
    assert "Growing tank is paused" not in text_of(web.get(POOL))


def test_a_disk_that_is_back_can_be_brought_online_with_one_click(web, calm):
    put(shapes.raidz2("ONLINE", "REMOVED", "ONLINE", "ONLINE"), 2)
    assert "Bring it online" not in text_of(web.get(POOL))
    put(shapes.raidz2("ONLINE", "REMOVED", "ONLINE", "ONLINE"))
    page = Page(web.get(POOL))
    assert "is in the box again. If it was pulled out" in page.text
    assert f"{POOL}vdev/102/online/" in links(page)


@pytest.mark.parametrize(("state", "advised"), [("REMOVED", "is missing."), ("FAULTED", "is not in use.")])
def test_d32_pool_page_says_once_what_happened_to_a_disk(web, calm, state, advised):
    put(shapes.raidz2("ONLINE", state, "ONLINE", "ONLINE"), 2)
    text = text_of(web.get(POOL))
    assert text.count("was pulled out." if state == "REMOVED" else "failed and was taken out of use.") == 1
    assert text.count(f"{advised} Put it back, or put another one in its place.") == 1


def test_error_counts_are_explained_on_the_pool_page(web, calm):
    put(shapes.pool(shapes.group("mirror-0", shapes.leaf(1, checksum_errors=2), shapes.leaf(2))))
    assert "2 checksum errors: it returned other data than was written" in text_of(web.get(POOL))


# --- bays -----------------------------------------------------------------------------------------------------------
def chassis(web) -> list[tuple[str, str]]:
    """Bay name and word of every place that is drawn."""
    return [
        (one.label if isinstance(one, MissingDisk) else one.name, getattr(one, "word", "empty"))
        for one in read_box().places
    ]


def test_a_pulled_disk_keeps_its_bay_and_the_others_keep_their_numbers(web, calm):
    seen(range(1, 7))
    put(shapes.raidz2("ONLINE", "REMOVED", "ONLINE", "ONLINE"), 2)
    assert chassis(web) == [
        ("1", "healthy"),
        ("2", "removed"),
        ("3", "healthy"),
        ("4", "healthy"),
        ("5", "free"),
        ("6", "free"),
    ]
    assert "Bay 2" in text_of(web.get(POOL))
    assert "Bay 2 (WDC WD20EARS-00MVWB0 WD-WCAZA0000002) was pulled out" in text_of(web.get("/"))


def test_an_empty_bay_is_told_from_a_free_disk(web, calm):
    seen(range(1, 7))
    put(shapes.raidz2(), 6)
    assert chassis(web)[-2:] == [("5", "free"), ("6", "empty")]
    page = Page(web.get("/"))
    drawn = [found["class"] for tag, found in page.elements if "bay " in found.get("class", "") + " "]
    assert any("bay-nothing" in found for found in drawn)


def test_a_new_port_comes_after_the_known_ones(web, calm):
    seen([2, 3])
    seen([1])
    assert list(BayRow.objects.values_list("port", "position")) == [
        ("pci-0000:00:02.0-ata-1", 1),
        ("pci-0000:00:03.0-ata-1", 2),
        ("pci-0000:00:01.0-ata-1", 3),
    ]
    assert ports.port_of("pci-0000:00:02.0-ata-1.0") == "pci-0000:00:02.0-ata-1"
    assert sorted(
        ["pci-0000:00:0b.0-ata-1", "x-ata-10", "pci-0000:00:0a.0-ata-1", "x-ata-9"], key=ports.natural_key
    ) == [
        "pci-0000:00:0a.0-ata-1",
        "pci-0000:00:0b.0-ata-1",
        "x-ata-9",
        "x-ata-10",
    ]


def test_only_the_rebuilt_disk_is_drawn_as_rebuilding(web, calm):
    put(shapes.replacing())
    words = {bay.number: bay.word for bay in read_box().bays}
    assert words == {1: "offline", 2: "healthy", 3: "healthy", 4: "healthy", 5: "rebuilding", 6: "free"}


def answers(**changes: Any) -> dict[str, Any]:
    found = {f"position-{row.pk}": row.position for row in BayRow.objects.all()}
    return {**found, **{f"label-{row.pk}": row.label for row in BayRow.objects.all()}, **changes}


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("2", "2 is the place of another bay that has no label."),
        ("3", "3 is the number of a disk that is in no bay."),
        ("1", ""),
        ("4", ""),
    ],
)
def test_a_label_that_pages_use_for_another_disk_is_refused(web, calm, label, words):
    seen([1, 2])
    put(shapes.single(), count=3)
    first = BayRow.objects.all()[0]
    response = web.post("/disks/bays/", answers(**{f"label-{first.pk}": label}))
    assert response.status_code == (400 if words else 302)
    assert words in text_of(response)
    names = [bay.name for bay in read_box().bays]
    assert len(set(names)) == len(names) == 3


def test_a_place_or_number_that_comes_later_is_no_label_of_another_bay(calm):
    seen([1, 2])
    BayRow.objects.filter(position=1).update(label="3")
    put(shapes.single(), count=4)
    assert sorted(bay.name for bay in read_box().bays) == ["2", "3", "4", "5"]
    seen([3, 4])
    assert sorted(map(str, BayRow.objects.all())) == ["2", "3", "4", "5"]
    assert sorted(bay.name for bay in read_box().bays) == ["2", "3", "4", "5"]


def test_bays_are_named_and_ordered_by_their_owner(web, calm):
    seen(range(1, 4))
    put(shapes.single(), count=3)
    first, second, _third = BayRow.objects.all()
    changed = answers(**{f"label-{first.pk}": "top left", f"position-{first.pk}": 2, f"position-{second.pk}": 1})
    for _ in range(2):
        assert web.post("/disks/bays/", changed).status_code == 302
    assert chassis(web) == [("1", "free"), ("top left", "healthy"), ("3", "free")]
    assert "Bay top left" in text_of(web.get(f"/disks/{path_of(1).rsplit('/')[-1]}/"))


@pytest.mark.parametrize(
    ("position", "label", "words"),
    [
        ("x", "", "number from 1 to 999"),
        ("0", "", "number from 1 to 999"),
        ("2", "", "same place"),
        ("1", "b" * 21, "longer than 20"),
        ("1", "a\nb", "line break"),
        ("1", "low", "same name"),
    ],
)
def test_bays_that_cannot_be_told_apart_are_refused(web, calm, position, label, words):
    seen([1, 2])
    first, second = BayRow.objects.all()
    BayRow.objects.filter(pk=second.pk).update(label="low")
    before = list(BayRow.objects.values())
    response = web.post("/disks/bays/", answers(**{f"position-{first.pk}": position, f"label-{first.pk}": label}))
    assert response.status_code == 400
    assert words in text_of(response)
    assert list(BayRow.objects.values()) == before


def test_an_empty_bay_can_be_forgotten_and_a_full_one_not(web, calm):
    seen([1, 2])
    put(shapes.single(), count=1)
    full, empty = BayRow.objects.all()
    web.post("/disks/bays/", answers(**{f"forget-{full.pk}": "on", f"forget-{empty.pk}": "on"}))
    assert list(BayRow.objects.values_list("port", flat=True)) == ["pci-0000:00:01.0-ata-1"]


@pytest.mark.parametrize("way", ["blink", "perhaps"])
def test_a_disk_is_located_by_the_agent_and_not_waited_for(web, calm, monkeypatch, way):
    put(shapes.single())
    asked: list[dict[str, Any]] = []

    def ask(request: dict[str, Any], **_more: Any):
        asked.append(request)
        yield {"facts": {"way": way, "seconds": 30}}
        raise AssertionError("it was waited for")

    monkeypatch.setattr(agent_client, "stream_replies", ask)
    key = DiskRow.objects.order_by("key").first()
    assert key
    response = web.post(f"/disks/{key.pk}/locate/", {"next": "//evil.example/"}, follow=True)
    assert asked == [{"verb": "locate", "disk": key.fact.path}]
    assert response.redirect_chain == [("/", 302)]
    assert "its activity light blinks" in text_of(response)


def test_a_disk_that_cannot_be_located_says_so(web, calm, monkeypatch):
    put(shapes.single())

    def ask(_request: dict[str, Any], **_more: Any):
        raise Failed("Larder's agent does not answer")
        yield {}

    monkeypatch.setattr(agent_client, "stream_replies", ask)
    key = path_of(1).rsplit("/")[-1]
    assert "agent does not answer" in text_of(web.post(f"/disks/{key}/locate/", follow=True))


def test_a_disk_that_failed_its_burn_in_comes_last_where_disks_are_added(web, calm):
    put(shapes.raidz2(), disks=(disk(5), disk(6)))
    burn_ins_made.finished(number=5, verdict="failed")
    assert [bay.key[-1] for bay in web.get(f"{POOL}add/spare/").context["usable"]] == ["6", "5"]


def test_a_disk_that_failed_its_burn_in_counts_as_no_free_disk_to_grow_with(web, calm):
    put(shapes.raidz2(), 5, disks=(disk(5),))
    free = with_burn_ins(read_box().bays)
    burn_ins_made.finished(number=5, verdict="failed")
    assert sum(bay.is_free for bay in free) == sum(bay.is_free for bay in with_burn_ins(read_box().bays)) + 1
