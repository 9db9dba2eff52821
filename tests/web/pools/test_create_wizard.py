"""The wizard that makes a pool: its questions, what it says to wrong answers, and that it only ever asks."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from django.http import QueryDict
from msgspec.structs import replace

from appliance.facts.box import Disk, Use
from appliance.formatting import size_text
from appliance.layout.geometry import usable_bytes
from tests.reasons import codes_of_form
from tests.unit.made import OLD, disk
from tests.web import rows
from tests.web.benchmarks import sweeps_made
from tests.web.disks import burn_ins_made
from tests.web.reading import Page, text_of
from web.disks.burn_in_report import with_burn_ins
from web.inventory.box import read_box
from web.inventory.models import DiskRow
from web.jobs.models import Job
from web.pools.layout_offers import propose_disks

URL = "/pools/new/"
EXPORTED = Use("exported", "holds the pool attic, which is not in use here", "77", "attic")


@pytest.fixture
def disks(calm) -> list[Disk]:
    """Four free disks, one with old data, one of an exported pool, one in a pool; the system's own last."""
    pool = rows.pool_of("family", 5000, busy := disk(9))
    found = rows.empty_box(
        4,
        disk(7, uses=(OLD,)),
        disk(8, uses=(EXPORTED,)),
        replace(busy, uses=(Use("pool", "is part of the pool family", "5000", "family"),)),
    )
    rows.put(pools=[pool])
    return found


def ask(web, step: str, disks: list[Disk] | list[str] = (), **answers: Any):  # type: ignore[assignment]
    paths = [one if isinstance(one, str) else one.path for one in disks]
    return web.get(URL, {"step": step, "disks": paths, **answers})


def good(web, step: str, disks: list[Disk], count: int = 4, **changes: Any):
    return ask(web, step, disks[:count], **{"name": "tank", "layout": "raidz2-1", **changes})


def step_of(response) -> str:
    """The step that a page of the wizard asks; ``review`` for the review page."""
    if b'action="/jobs/confirm/"' in response.content:
        return "review"
    return response.context["step"]


def assert_refused(response, step: str, field: str, code: str) -> None:
    page = Page(response)
    assert response.status_code == 400
    assert step_of(response) == step
    assert codes_of_form(response, field) == [code]
    ids = {attributes.get("id") for _tag, attributes in page.elements}
    assert f"id_{field}" in ids  # the summary's link leads to the field
    assert any(attributes.get("href") == f"#id_{field}" for _tag, attributes in page.elements)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "required"),
        ("mirror", "pool-name-reserved"),
        ("mirror2", "pool-name-reserved"),
        ("raidz1", "pool-name-reserved"),
        ("draid", "pool-name-reserved"),
        ("spare", "pool-name-reserved"),
        ("log", "pool-name-reserved"),
        ("c0t0d0", "pool-name-like-disk"),
        ("-f", "pool-name-invalid"),
        ("tank\nx", "invisible-characters"),
        ("tank\x00", "null_characters_not_allowed"),
        ("tank;reboot", "pool-name-invalid"),
        ("ta nk", "pool-name-invalid"),
        (" tank", "pool-name-invalid"),
        ("tank/photos", "pool-name-invalid"),
        ("../etc", "pool-name-invalid"),
        ("t" * 41, "pool-name-too-long"),
        ("t" * 500, "max_length"),
        ("<script>alert(1)</script>", "pool-name-invalid"),
        ("{{ 7|add:7 }}", "pool-name-invalid"),
        ("family", "pool-name-taken"),
        ("attic", "pool-name-exported"),
    ],
)
def test_wrong_name_is_refused_at_its_field(web, disks, name, code):
    assert_refused(ask(web, "disks", name=name), "name", "name", code)


@pytest.mark.parametrize("name", ["mirror", "", "a\nb", "family", "etc"])
@pytest.mark.parametrize("step", ["layout", "options", "review"])
def test_a_wrong_name_is_found_also_where_the_address_was_written_by_hand(web, disks, name, step):
    response = good(web, "review" if name in {"family", "etc"} else step, disks, name=name)
    assert response.status_code == 400
    assert step_of(response) == "name"
    assert not Job.objects.exists()


def test_the_name_of_a_pool_on_unused_disks_is_refused_before_the_review(web, disks):
    assert_refused(good(web, "review", disks, name="attic"), "name", "name", "pool-name-exported-on-disk")


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ([], "disk-not-chosen"),
        (["/dev/disk/by-id/gone"], "invalid_choice"),
        (["/dev/sda"], "invalid_choice"),
        ([""], "invalid_choice"),
        (["-f"], "invalid_choice"),
        (["/dev/disk/by-id/x\n"], "invalid_choice"),
        (["\x00"], "invalid_choice"),
        (["../../etc/passwd"], "invalid_choice"),
    ],
)
def test_a_wrong_disk_is_refused_at_its_field(web, disks, chosen, code):
    assert_refused(ask(web, "layout", chosen, name="tank", answered="disks"), "disks", "disks", code)


@pytest.mark.parametrize(("which", "why"), [(-1, "holds the system"), (-2, "part of the pool family")])
def test_a_disk_in_use_cannot_be_chosen_and_says_why(web, disks, which, why):
    response = ask(web, "layout", [disks[0], disks[which]], name="tank")
    assert_refused(response, "disks", "disks", "disk-in-use")
    assert why in text_of(response)


def test_a_disk_in_use_is_shown_but_cannot_be_ticked(web, disks):
    page = Page(ask(web, "disks", name="tank"))
    boxes = {found["value"]: "disabled" in found for tag, found in page.elements if found.get("name") == "disks"}
    assert [path for path, closed in boxes.items() if closed] == [disks[-2].path, disks[-1].path]
    assert "Holds ext4 data called photos. It would be erased." in page.text


@pytest.mark.parametrize(("step", "count"), [("disks", 4), ("extras", 3)])
def test_every_step_that_offers_a_disk_shows_that_it_reports_to_be_failing(web, disks, step, count):
    says = "It reports that it is failing."
    DiskRow.objects.filter(key=disks[3].path.rsplit("/")[-1]).update(smart_passed=False, smart_text=says)
    page = Page(good(web, step, disks, count, layout="raidz1-1"))
    assert says in page.text
    DiskRow.objects.update(smart_passed=True)
    assert says not in Page(good(web, step, disks, count, layout="raidz1-1")).text


def chosen_first() -> list[str]:
    """The disks that the wizard proposes."""
    return propose_disks(with_burn_ins(read_box().bays))


def test_disks_that_failed_their_burn_in_or_are_failing_are_not_proposed(disks):
    assert chosen_first() == [one.path for one in disks[:4]]
    burn_ins_made.finished(number=1, verdict="failed")
    DiskRow.objects.filter(key=disks[1].path.rsplit("/")[-1]).update(verdict="failing", smart_text="It is failing.")
    assert chosen_first() == [one.path for one in disks[2:4]]


def test_no_disk_is_proposed_where_all_failed_their_burn_in(disks):
    for number in range(1, 5):
        burn_ins_made.finished(number=number, pk=uuid.uuid4(), verdict="failed")
    assert chosen_first() == []


def test_layouts_warn_of_a_chosen_disk_that_failed_its_burn_in(web, disks):
    assert "failed its burn-in" not in Page(good(web, "layout", disks)).text
    burn_ins_made.finished(number=2, verdict="failed")
    assert "Bay 2 failed its burn-in. Leave it out, or replace it soon." in Page(good(web, "layout", disks)).text


@pytest.mark.parametrize(
    ("count", "layout", "code"),
    [
        (4, "", "layout-unknown"),
        (4, "raid5-1", "layout-unknown"),
        (4, "raidz2", "layout-unknown"),
        (4, "raidz2-0", "layout-unknown"),
        (4, "raidz2--1", "layout-unknown"),
        (4, "raidz2-٢", "layout-unknown"),
        (4, "raidz2-²", "layout-unknown"),
        (4, "raidz2-1; reboot", "layout-unknown"),
        (4, "mirror-3", "layout-not-divisible"),
        (1, "mirror-1", "disks-too-few-for-vdevs"),
        (2, "raidz1-1", "disks-too-few-for-vdevs"),
        (3, "raidz2-1", "disks-too-few-for-vdevs"),
        (4, "raidz3-1", "disks-too-few-for-vdevs"),
        (4, "raidz1-2", "disks-too-few-for-vdevs"),
    ],
)
@pytest.mark.parametrize("step", ["options", "review"])
def test_a_layout_that_does_not_fit_is_refused_at_its_field(web, disks, count, layout, code, step):
    assert_refused(good(web, step, disks, count, layout=layout), "layout", "layout", code)


@pytest.mark.parametrize(
    ("field", "value"), [("compression", "gzip"), ("compression", "-f"), ("ashift", "16"), ("ashift", "x")]
)
def test_an_unknown_option_is_refused_at_its_field(web, disks, field, value):
    response = good(web, "review", disks, **{field: value})
    assert_refused(response, "options", field, "invalid_choice")


@pytest.mark.parametrize(
    ("query", "step"),
    [
        ("", "name"),
        ("step=elsewhere", "name"),
        ("step=review", "name"),
        ("step=extras&name=tank", "layout"),
        ("step=options&name=tank", "layout"),
        ("step=%00", "name"),
    ],
)
def test_a_step_cannot_be_skipped(web, disks, query, step):
    assert step_of(web.get(f"{URL}?{query}")) == step


def test_walking_through_shows_each_question_and_makes_nothing_before_the_review_is_confirmed(web, disks):
    for step in ("name", "disks", "layout", "extras", "options", "review"):
        response = good(web, step, disks)
        assert (response.status_code, step_of(response)) == (200, step)
    assert not Job.objects.exists()


# --- steps with nothing to choose ---------------------------------------------------------------------------
ALL_STEPS = ["Name", "Disks and layout", "Log, cache, spares", "Options", "Review"]


def listed(page: Page) -> list[str]:
    """The titles in the list of steps, which ends with the review."""
    texts = [text.strip() for text in page.texts]
    return [title for title in ALL_STEPS if title in texts[: texts.index("Review") + 1]]


def test_without_a_disk_left_over_log_cache_and_spares_are_not_asked_for(web, calm):
    disks = rows.empty_box(4)
    page = Page(good(web, "layout", disks))
    assert listed(page) == ["Name", "Disks and layout", "Options", "Review"]
    response = web.get(submit(page))
    page = Page(response)
    assert step_of(response) == "options"
    assert step_of(web.get(back(page))) == "layout"
    review = Page(web.get(submit(page)))
    assert listed(review) == ["Name", "Disks and layout", "Options", "Review"]
    fewer = Page(good(web, "layout", disks, 3, layout="raidz1-1"))
    assert listed(fewer) == ALL_STEPS
    assert step_of(web.get(submit(fewer))) == "extras"


def test_a_device_that_became_a_data_disk_is_no_longer_beside_the_data(web, calm):
    disks = rows.empty_box(4)
    spare = {"spares": disks[3].path}
    assert f"spare {disks[3].path}" in text_of(good(web, "review", disks, 3, layout="raidz1-1", **spare))
    response = good(web, "review", disks, 4, **spare)
    assert step_of(response) == "review"
    assert " spare " not in text_of(response)


def test_a_device_that_is_gone_is_said_even_where_no_disk_is_left_over(web, calm):
    disks = rows.empty_box(4)
    response = good(web, "review", disks, spares="/dev/disk/by-id/gone")
    assert_refused(response, "extras", "spares", "invalid_choice")
    assert listed(Page(response)) == ALL_STEPS


def test_one_disk_alone_is_not_asked_about_and_the_review_says_what_it_means(web, calm):
    disks = rows.empty_box(1)
    page = Page(web.get(submit(Page(web.get(URL)), name="tank")))
    assert listed(page) == ["Name", "Options", "Review"]
    assert values(page)["answered"][-1] == "options"
    assert step_of(web.get(back(page))) == "name"
    review = Page(web.get(submit(page)))
    assert listed(review) == ["Name", "Options", "Review"]
    assert "One failed disk loses everything in this pool." in review.text
    assert f"Disk {disks[0].model} (serial {disks[0].serial})" in review.text
    assert f"-- tank {disks[0].path}" in review.text


def test_without_a_disk_that_can_be_used_there_is_no_way_on(web, calm):
    rows.empty_box(0)
    page = Page(ask(web, "disks", name="tank"))
    assert "No disk of this box can be used." in page.text
    assert "Back" in page.text
    assert "Continue" not in page.text


def test_a_disk_that_was_chosen_alone_leads_past_the_layout_and_back_to_the_disks(web, disks):
    page = Page(web.get(choose_myself(Page(good(web, "layout", disks, layout="raidz1-1")))))
    response = web.get(submit(page, disks=disks[0].path))
    assert step_of(response) == "extras"
    response = web.get(back(Page(response)))
    assert step_of(response) == "disks"
    more = Page(web.get(submit(Page(response), disks=[one.path for one in disks[:3]])))
    assert values(more)["layout"] == ["raidz1-1"]


def test_a_taken_name_is_said_at_once_also_where_the_layout_is_not_asked_for(web, calm):
    rows.empty_box(1, taken := disk(9))
    rows.put(
        pools=[rows.pool_of("family", 5000, taken)],
        disks=[disk(1), replace(taken, uses=(Use("pool", "is part of the pool family", "5000", "family"),))],
    )
    assert_refused(ask(web, "layout", name="family"), "name", "name", "pool-name-taken")


def submit(page: Page, **changes: Any) -> str:
    """The address that a browser calls when the form is sent with these answers."""
    query = QueryDict(mutable=True)
    for name, value in page.form(of="step").values:
        query.appendlist(name, value)
    for name, value in changes.items():
        if value is None:
            query.pop(name, None)
        else:
            query.setlist(name, value if isinstance(value, list) else [value])
    return f"{URL}?{query.urlencode()}"


def back(page: Page) -> str:
    return next(
        attributes["href"] for _tag, attributes in page.elements if attributes.get("href", "").startswith(f"{URL}?")
    )


def values(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(submit(page)).query, keep_blank_values=True)


def choose_myself(page: Page) -> str:
    """The address of "Choose the disks myself"."""
    return link(page, "step=disks")


def link(page: Page, part: str) -> str:
    """The address of the first link with that part."""
    return next(found["href"] for _tag, found in page.elements if part in found.get("href", ""))


@pytest.fixture
def answered(web, disks) -> list[Page]:
    """The pages of a walk with answers that are not the proposed ones; the last is the review."""
    pages = [Page(web.get(URL))]
    pages.append(Page(web.get(submit(pages[-1], name="attic2"))))
    pages.append(Page(web.get(choose_myself(pages[-1]))))
    pages.append(Page(web.get(submit(pages[-1], disks=[one.path for one in disks[:3]]))))
    pages.append(Page(web.get(submit(pages[-1], layout="raidz1-1"))))
    pages.append(Page(web.get(submit(pages[-1], spares=disks[3].path))))
    pages.append(Page(web.get(submit(pages[-1], encrypted="on", compression="zstd", ashift="13", atime="on"))))
    return pages


def test_the_answers_of_every_step_arrive_at_the_review(disks, answered):
    text = answered[-1].text
    assert "The pool attic2: raidz1 of 3 disks" in text
    assert f"spare {disks[3].path}" in text
    for piece in ("-o ashift=13", "compression=zstd", "atime=on", "encryption=", "attic2 raidz1"):
        assert piece in text


def test_going_back_step_by_step_keeps_every_answer_and_so_does_coming_again(web, disks, answered):
    pages = [answered[-1]]
    for _ in range(4):
        pages.append(Page(web.get(back(pages[-1]))))
    assert values(pages[1])["encrypted"] == ["on"]
    assert values(pages[2])["spares"] == [disks[3].path]
    assert values(pages[3])["layout"] == ["raidz1-1"]
    assert values(pages[4])["name"] == ["attic2"]
    page = Page(web.get(choose_myself(pages[3])))
    assert values(page)["disks"] == [one.path for one in disks[:3]]
    page = pages[4]
    for step in ("layout", "extras", "options"):
        page = Page(web.get(submit(page)))
        assert values(page)["answered"][-1] == step
    kept = values(page)
    assert [kept[name] for name in ("encrypted", "compression", "ashift", "atime")] == [
        ["on"],
        ["zstd"],
        ["13"],
        ["on"],
    ]
    assert len(kept["answered"]) == 5


def test_an_error_keeps_every_other_answer(web, disks, answered):
    there = dict(parse_qsl(urlsplit(back(answered[-1])).query))
    page = Page(web.get(URL, {**there, "disks": [one.path for one in disks[:4]], "step": "review", "name": "log"}))
    kept = values(page)
    assert kept["name"] == ["log"]
    assert (kept["encrypted"], kept["layout"], len(kept["disks"])) == (["on"], ["raidz1-1"], 4)
    assert kept["spares"] == [disks[3].path]


def test_another_number_of_disks_gets_a_layout_that_fits_it(web, disks, answered):
    page = Page(web.get(back(answered[-1])))
    for _ in range(2):
        page = Page(web.get(back(page)))
    page = Page(web.get(choose_myself(page)))
    page = Page(web.get(submit(page, disks=[one.path for one in disks[:2]])))
    assert values(page)["layout"] == ["mirror-1"]
    assert "cannot" not in page.text


def test_the_name_that_is_proposed_is_no_pool_in_use_and_none_that_was_exported(web, calm):
    rows.empty_box(2)
    assert 'name="name" value="tank"' in web.get(URL).content.decode()
    pool = rows.pool_of("tank", 5000, busy := disk(9))
    rows.put(
        pools=[pool],
        disks=[
            disk(1),
            replace(busy, uses=(Use("pool", "is part of the pool tank", "5000", "tank"),)),
            disk(8, uses=(Use("exported", "holds the pool tank2, which is not in use here", "77", "tank2"),)),
        ],
    )
    assert 'name="name" value="tank3"' in web.get(URL).content.decode()


def test_an_empty_box_says_that_there_is_no_free_disk(web, calm):
    rows.put(pools=[], disks=[rows.SYSTEM_DISK])
    page = Page(web.get(URL))
    assert "There is no free disk in this box." in page.text
    assert "Name of the pool" not in page.text and "Continue" not in page.text
    assert "See the disks" in page.text


def test_a_missing_zfs_module_is_said_before_anything_is_planned(web, disks):
    from web.inventory import store

    store.checked("zfs", changed=False, error="The ZFS module is not loaded, so no pool can be used.")
    response = good(web, "review", disks)
    assert response.status_code == 400
    assert codes_of_form(response) == ["zfs-not-loaded"]


# --- the review ---------------------------------------------------------------------------------------------
def test_the_review_shows_the_exact_command(web, disks):
    paths = " ".join(one.path for one in disks[:4])
    text = text_of(good(web, "review", disks))
    assert "zpool create " in text
    assert f"-m /tank -- tank raidz2 {paths}" in text


def test_the_review_of_free_disks_asks_for_no_name_and_says_that_it_can_be_undone(web, disks):
    page = Page(good(web, "review", disks))
    assert "typed" not in page.form("/jobs/confirm/").data
    assert "The pool can be destroyed again" in page.text
    assert "This will be erased" not in page.text


@pytest.mark.parametrize(
    ("which", "what"), [(4, "holds ext4 data called photos"), (5, "holds the pool attic, which is not in use here")]
)
def test_the_review_lists_what_is_erased_and_asks_for_the_name(web, disks, which, what):
    response = ask(web, "review", [disks[which]], name="tank", layout="stripe-1")
    page = Page(response)
    assert f"{disks[which].model} (serial {disks[which].serial}) {what}" in page.text
    assert "This will be erased" in page.text
    assert "What was on the disks before cannot be recovered." in page.text
    assert "type tank" in page.text
    assert page.form("/jobs/confirm/").data["typed"] == ""


def test_disks_of_unequal_size_are_warned_of(web, disks):
    large = disk(5, size=3 * 10**12)
    rows.put(disks=[*disks, large])
    text = text_of(ask(web, "review", [*disks[:3], large], name="tank", layout="raidz1-1"))
    assert "The disks differ in size. Each counts only as much as the smallest of its group" in text


@pytest.mark.parametrize("layout", ["stripe-1"])
def test_a_pool_without_protection_is_warned_of(web, disks, layout):
    assert "One failed disk loses everything in this pool." in text_of(good(web, "review", disks, 1, layout=layout))


@pytest.mark.parametrize("step", ["layout", "compare"])
def test_every_layout_that_is_offered_leads_to_a_review(web, disks, step):
    for count in range(1, 5):
        page = Page(good(web, step, disks, count))
        offered = [found["value"] for _tag, found in page.elements if found.get("name") == "layout"]
        assert offered
        for layout in offered:
            assert step_of(good(web, "review", disks, count, layout=layout)) == "review"


@pytest.mark.parametrize("step", ["layout", "compare"])
def test_exactly_one_layout_is_recommended_and_chosen(web, disks, step):
    for count in range(1, 5):
        page = Page(ask(web, step, disks[:count], name="tank"))
        assert page.text.count("recommended") == (1 if count > 1 or step == "compare" else 0)
        assert sum("checked" in found for _tag, found in page.elements if found.get("name") == "layout") == 1


# --- the advisor --------------------------------------------------------------------------------------------
def layouts(page: Page) -> list[str]:
    return [found["value"] for _tag, found in page.elements if found.get("name") == "layout"]


def test_after_the_name_the_free_disks_are_proposed_for_without_a_question(web, disks):
    page = Page(web.get(submit(Page(web.get(URL)), name="tank")))
    assert values(page)["disks"] == [one.path for one in disks[:4]]
    assert values(page)["layout"] == ["mirror-2"]
    assert "4 disks" in page.text
    assert "Choose the disks myself" in page.text
    for words in ("2 × Mirror of 2", "raidz1 of 4", "raidz2 of 4"):
        assert words in page.text
    every = Page(web.get(link(page, "step=compare")))
    assert values(every)["layout"] == ["mirror-2"]
    assert "Stripe of 4" in every.text
    assert "Either disk of each pair may fail" in every.text


def test_each_suggestion_says_what_may_fail_what_it_holds_and_what_protects_the_files(web, disks):
    page = Page(good(web, "layout", disks, layout=""))
    assert layouts(page) == ["mirror-2", "raidz2-1", "raidz1-1"]
    held = [
        size_text(usable_bytes(*shape))
        for shape in (("mirror", [[2 * 10**12] * 2] * 2), ("raidz1", [[2 * 10**12] * 4]))
    ]
    for words in (
        "Balanced",
        "Safest",
        "Most room",
        *held,
        "Any two of the four disks can fail at once without losing a file.",
    ):
        assert words in page.text
    assert "two disks' worth of space protects the others" in page.text
    names = [found["aria-labelledby"].split() for _tag, found in page.elements if found.get("name") == "layout"]
    ids = [found["id"] for _tag, found in page.elements if "id" in found]
    assert all(ids.count(one) == 1 for pair in names for one in pair)


def test_a_layout_that_serves_several_goals_is_one_suggestion(web, disks):
    page = Page(good(web, "layout", disks, 2))
    assert layouts(page) == ["mirror-1"]
    assert "Balanced, safest and most room" in page.text


def test_one_disk_beside_others_is_said_to_lose_everything(web, disks):
    page = Page(good(web, "layout", disks, 1))
    assert layouts(page) == ["stripe-1"]
    assert "No protection" in page.text
    assert "One failed disk loses everything in this pool." in page.text
    assert not any("step=compare" in found.get("href", "") for _tag, found in page.elements)


def test_every_proposal_says_what_it_holds_survives_risks_and_does(web, disks):
    page = Page(good(web, "compare", disks))
    held = size_text(usable_bytes("raidz1", [[2 * 10**12] * 4]))
    assert {held, "33 %", "never", "always", "4 ×, 2 ×", "1 ×, 1 ×"} <= {text.strip() for text in page.texts}
    assert "Add one disk of 2 TB to a group" in page.text
    pictures = [found["aria-label"] for tag, found in page.elements if tag == "svg" and found.get("role") == "img"]
    assert pictures[0] == "50 % for data, 50 % for protection"
    assert len(pictures) == len(set(layouts(page)) & {"mirror-2", "raidz1-1", "raidz2-1", "stripe-1"})


def test_layouts_that_are_not_proposed_can_be_chosen_by_hand(web, disks):
    page = Page(good(web, "compare", disks))
    assert "Choose the layout myself" in page.text
    assert "mirror-1" in layouts(page)
    assert step_of(good(web, "extras", disks, layout="mirror-1")) == "extras"
    again = Page(good(web, "layout", disks, layout="mirror-1"))
    assert values(again)["layout"] == ["mirror-1"]
    suggested = Page(web.get(link(again, "step=layout")))
    assert values(suggested)["layout"] == ["mirror-2"]
    assert "mirror-1" not in layouts(suggested)


def test_old_data_is_never_proposed_to_be_erased(web, calm):
    rows.empty_box(2, disk(7, uses=(OLD,)))
    page = Page(ask(web, "layout", name="tank"))
    assert values(page)["disks"] == [disk(1).path, disk(2).path]
    chosen = Page(ask(web, "layout", [disk(7)], name="tank"))
    assert "Holds ext4 data called photos. It would be erased." in chosen.text


def test_with_nothing_free_the_disks_are_asked_for_and_nothing_is_called_wrong(web, calm):
    rows.put(pools=[], disks=[disk(7, uses=(OLD,)), rows.SYSTEM_DISK])
    response = ask(web, "layout", name="tank")
    assert (response.status_code, step_of(response)) == (200, "disks")


def test_a_usb_stick_and_a_sick_disk_are_not_proposed(web, calm):
    rows.empty_box(3, disk(7, bus="usb"))
    assert len(values(Page(ask(web, "layout", name="tank")))["disks"]) == 3


# --- log, cache, spare --------------------------------------------------------------------------------------
def test_devices_beside_the_data_are_those_that_hold_none(web, disks):
    page = Page(good(web, "extras", disks, 2, layout="mirror-1"))
    for field in ("logs", "cache", "spares"):
        offered = {found["value"] for _tag, found in page.elements if found.get("name") == field}
        assert offered == {one.path for one in disks[2:6]}


def test_what_a_log_and_a_cache_bring_and_cost_is_said_with_what_was_measured(web, disks):
    from appliance.facts.box import Caching
    from web.inventory import store
    from web.inventory.models import CachingRow

    before = text_of(good(web, "extras", disks, 2, layout="mirror-1"))
    assert "Too little has been written" in before
    assert "worth it here" not in before
    store.replace(CachingRow, [Caching(hit_percent=97, sync_percent=31, memory=2**31)], lambda found: found.key)
    text = text_of(good(web, "extras", disks, 2, layout="mirror-1"))
    for words in (
        "Memory answers 97 % of the reads",
        "Programs waited for 31 % of all bytes written since the box started. A fast log would be noticeable.",
        "Memory for its index",
    ):
        assert words in text
    assert text.count("worth it here") == 1


@pytest.mark.parametrize(
    ("answers", "field", "code"),
    [
        ({"logs": [3], "cache": [3]}, "cache", "disk-chosen-elsewhere"),
        ({"logs": [3], "spares": [3]}, "spares", "disk-chosen-elsewhere"),
        ({"cache": [3], "spares": [3]}, "spares", "disk-chosen-elsewhere"),
        ({"logs": [1]}, "logs", "invalid_choice"),
        ({"logs": ["/dev/disk/by-id/gone"]}, "logs", "invalid_choice"),
        ({"spares": [4]}, "spares", "spare-too-small"),
    ],
)
def test_a_wrong_device_is_refused_at_its_field_and_keeps_the_others(web, calm, answers, field, code):
    disks = rows.empty_box(3, disk(4, size=10**12))
    sent = {
        name: [disks[one - 1].path if isinstance(one, int) else one for one in given] for name, given in answers.items()
    }
    response = ask(web, "options", disks[:2], name="tank", layout="mirror-1", **sent)
    assert_refused(response, "extras", field, code)
    assert values(Page(response))["name"] == ["tank"]


def test_a_log_alone_is_warned_of_and_a_pair_is_a_mirror(web, calm):
    disks = rows.empty_box(4, disk(5, rotational=False), disk(7, rotational=False))
    fast = [one.path for one in disks[4:6]]
    alone = text_of(ask(web, "review", disks[:4], name="tank", layout="raidz2-1", logs=fast[:1]))
    assert "The log is on a single disk." in alone
    pair = text_of(ask(web, "review", disks[:4], name="tank", layout="raidz2-1", logs=fast))
    assert f"log mirror {fast[0]} {fast[1]}" in pair
    assert "single disk" not in pair


# --- equal partitions ---------------------------------------------------------------------------------------
@pytest.fixture
def unequal(calm) -> list[Disk]:
    return rows.empty_box(3, disk(4, size=3 * 10**12))


def test_unequal_disks_are_offered_in_equal_partitions_and_the_second_pool_is_asked_for(web, unequal):
    page = Page(ask(web, "compare", unequal[:4], name="tank"))
    assert "raidz2-1-0-equal" in layouts(page)
    assert "unprotected" in page.text
    options = Page(ask(web, "options", unequal[:4], name="tank", layout="raidz1-1-0-equal"))
    assert values(options)["rest"] == ["tank-rest"]
    assert "rest" not in values(Page(ask(web, "options", unequal[:4], name="tank", layout="raidz1-1")))


def test_the_review_of_equal_partitions_shows_the_cuts_and_both_pools(web, unequal):
    text = text_of(ask(web, "review", unequal[:4], name="tank", layout="raidz1-1-0-equal", rest="spill"))
    for words in (
        "sgdisk --clear --new=1:0:+",
        f"raidz1 {unequal[0].path}-part1",
        f"-- spill {unequal[3].path}-part2",
        "not protected",
        "Survives in spill",
    ):
        assert words in text


def test_what_is_left_of_two_larger_disks_is_offered_as_a_mirror_too(web, calm):
    found = rows.empty_box(2, disk(3, size=3 * 10**12), disk(4, size=3 * 10**12))[:4]
    page = Page(ask(web, "compare", found, name="tank"))
    assert {"raidz1-1-0-equal", "raidz1-1-0-equal-mirror"} <= set(layouts(page))
    options = Page(ask(web, "options", found, name="tank", layout="raidz1-1-0-equal-mirror"))
    assert "one disk of each may fail" in options.text
    text = text_of(ask(web, "review", found, name="tank", layout="raidz1-1-0-equal-mirror", rest="spill"))
    assert f"-- spill mirror {found[2].path}-part2 {found[3].path}-part2" in text
    assert "not protected" not in text
    without = text_of(ask(web, "review", found, name="tank", layout="raidz1-1-0-equal-mirror", rest=""))
    assert "mirror" not in without.split("zpool create")[-1]


def test_one_remainder_alone_cannot_be_mirrored(web, unequal):
    assert_refused(
        ask(web, "options", unequal[:4], name="tank", layout="raidz1-1-0-equal-mirror"),
        "layout",
        "layout",
        "rest-not-mirrored",
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("tank", "pool-names-equal"),
        ("mirror", "pool-name-reserved"),
        ("a\nb", "invisible-characters"),
        ("-f", "pool-name-invalid"),
        ("home", "name-of-system-folder"),
    ],
)
def test_wrong_name_for_the_second_pool_is_refused_at_its_field(web, unequal, name, code):
    response = ask(web, "review", unequal[:4], name="tank", layout="raidz1-1-0-equal", rest=name)
    assert_refused(response, "options", "rest", code)


@pytest.mark.parametrize("layout", ["stripe-1-0-equal", "raidz1-1-0-equal"])
def test_partitions_that_give_no_more_space_are_refused(web, disks, unequal, layout):
    chosen = unequal[:4] if layout.startswith("stripe") else unequal[:3]
    response = ask(web, "options", chosen, name="tank", layout=layout)
    assert_refused(response, "layout", "layout", "partitions-no-gain")


# --- keys ---------------------------------------------------------------------------------------------------
def test_a_key_file_without_encryption_is_refused_at_its_field(web, disks):
    assert_refused(good(web, "review", disks, key_file="on"), "options", "key_file", "key-file-unencrypted")


def test_a_key_is_new_each_time_and_is_kept_nowhere(web, disks, own_places):
    answers = [web.get("/pools/new/key/tank/") for _ in range(2)]
    keys = [answer.content.decode().strip() for answer in answers]
    assert len(set(keys)) == 2
    assert all(len(key) == 64 and int(key, 16) for key in keys)
    assert answers[0]["Content-Disposition"] == 'attachment; filename="tank.key"'
    assert answers[0]["Cache-Control"] == "no-store"
    assert not [path for path in own_places.rglob("*") if path.is_file() and keys[0].encode() in path.read_bytes()]


@pytest.mark.parametrize("name", ["-f", "a%0ab", "a%22b", "a%5cb", "x" * 256])
def test_a_key_is_made_only_for_what_can_be_the_name_of_a_plain_file(web, name):
    assert web.get(f"/pools/new/key/{name}/").status_code == 404


def test_the_review_shows_the_steps_of_the_wizard(web, disks):
    page = Page(good(web, "review", disks))
    current = [found for tag, found in page.elements if tag == "li" and found.get("aria-current") == "step"]
    assert len(current) == 1
    assert "Log, cache, spares" in page.text


def test_what_is_true_of_the_disks_is_said_once_and_not_in_every_row(web, unequal):
    text = text_of(ask(web, "compare", unequal[:4], name="tank"))
    assert text.count("The disks differ in size.") == 1
    assert text.count("One failed disk loses everything in this pool.") == 1
    assert "1 TB unused" in text


def test_what_was_measured_with_these_disks_stands_beside_the_layout(web, disks):
    measured = sweeps_made.spec(layouts=["raidz1"], ashifts=[12], disks=[disk.path for disk in disks[:3]])
    sweeps_made.finished(measured, rates=(132.0,))
    said = text_of(good(web, "layout", disks, 3, layout="raidz1-1"))
    assert said.count("Measured with these disks: it writes large files with 139 MB/s.") == 1
    assert "Measured with these disks" not in text_of(good(web, "layout", disks, 4))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("layout", "two disks' worth of space protects the others"),
        ("compare", "Files are spread over the disks, and nothing protects them."),
        ("compare", "all four disks hold the same files"),
        ("extras", "A fast disk that keeps the newest writes until they are on the data disks."),
        ("extras", "A fast disk that keeps what is read again and again"),
        ("extras", "A disk that waits, and takes the place of a disk that fails."),
        ("review", "raidz2 two disks' worth of space protects the others"),
    ],
)
def test_words_of_zfs_are_explained_where_they_stand(web, disks, step, words):
    assert words in text_of(good(web, step, disks))


def test_an_error_on_the_review_keeps_its_list_of_steps(web, calm):
    disks = rows.empty_box(4)
    form = Page(good(web, "review", disks, encrypted="on")).form("/jobs/confirm/")
    answer = Page(
        web.post("/jobs/confirm/", {**form.data, "titles": [value for name, value in form.values if name == "titles"]})
    )
    assert answer.form("/jobs/confirm/")
    assert listed(answer) == ["Name", "Disks and layout", "Options", "Review"]
