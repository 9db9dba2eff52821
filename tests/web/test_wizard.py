"""The wizard that makes a pool: its questions, what it says to wrong answers, and that it only ever asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from django.http import QueryDict

from appliance.facts import Disk, Use
from tests.unit.made import OLD, disk
from tests.web import rows
from tests.web.reading import Page, text_of
from web.jobs.models import Job

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
        replace(busy, uses=(Use("pool", "part of the pool family", "5000", "family"),)),
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


def assert_refused(response, step: str, field: str, sentence: str) -> None:
    page = Page(response)
    assert response.status_code == 400
    assert step_of(response) == step
    assert sentence in page.text
    assert field in response.context["form"].errors
    ids = {attributes.get("id") for _tag, attributes in page.elements}
    assert f"id_{field}" in ids  # the summary's link leads to the field
    assert any(attributes.get("href") == f"#id_{field}" for _tag, attributes in page.elements)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "Give the pool a name"),
        ("mirror", "ZFS keeps names like mirror for itself."),
        ("mirror2", "ZFS keeps names"),
        ("raidz1", "ZFS keeps names like raidz1 for itself."),
        ("draid", "ZFS keeps names"),
        ("spare", "ZFS keeps names"),
        ("log", "ZFS keeps names like log for itself."),
        ("c0t0d0", "looks like a disk to ZFS"),
        ("-f", "begins with a letter"),
        ("tank\nx", "a line break or another invisible character"),
        ("tank\x00", "Null characters are not allowed"),
        ("tank;reboot", "holds only letters"),
        ("ta nk", "holds only letters"),
        (" tank", "begins with a letter"),
        ("tank/photos", "holds only letters"),
        ("../etc", "begins with a letter"),
        ("t" * 41, "longer than 40 characters"),
        ("t" * 500, "at most 80 characters"),
        ("<script>alert(1)</script>", "begins with a letter"),
        ("{{ 7|add:7 }}", "begins with a letter"),
        ("family", "That name is taken by a pool of this box."),
        ("attic", "belongs to a pool on disks that are not in use"),
    ],
)
def test_a_wrong_name_gets_its_sentence_at_its_field(web, disks, name, sentence):
    assert_refused(ask(web, "disks", name=name), "name", "name", sentence)


@pytest.mark.parametrize("name", ["mirror", "", "a\nb", "family", "etc"])
@pytest.mark.parametrize("step", ["layout", "options", "review"])
def test_a_wrong_name_is_found_also_where_the_address_was_written_by_hand(web, disks, name, step):
    response = good(web, "review" if name in {"family", "etc"} else step, disks, name=name)
    assert response.status_code == 400
    assert step_of(response) == "name"
    assert not Job.objects.exists()


def test_the_name_of_a_pool_on_unused_disks_is_refused_before_the_review(web, disks):
    assert_refused(good(web, "review", disks, name="attic"), "name", "name", "that is not in use at the moment")


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ([], "Choose at least one disk."),
        (["/dev/disk/by-id/gone"], "One of the disks is no longer there."),
        (["/dev/sda"], "One of the disks is no longer there."),
        ([""], "One of the disks is no longer there."),
        (["-f"], "One of the disks is no longer there."),
        (["/dev/disk/by-id/x\n"], "One of the disks is no longer there."),
        (["\x00"], "One of the disks is no longer there."),
        (["../../etc/passwd"], "One of the disks is no longer there."),
    ],
)
def test_a_wrong_disk_gets_its_sentence(web, disks, chosen, sentence):
    assert_refused(ask(web, "layout", chosen, name="tank"), "disks", "disks", sentence)


@pytest.mark.parametrize(("which", "why"), [(-1, "holds the system"), (-2, "part of the pool family")])
def test_a_disk_in_use_cannot_be_chosen_and_says_why(web, disks, which, why):
    response = ask(web, "layout", [disks[0], disks[which]], name="tank")
    assert_refused(response, "disks", "disks", f"{why}, so it cannot be used.")


def test_a_disk_in_use_is_shown_but_cannot_be_ticked(web, disks):
    page = Page(ask(web, "disks", name="tank"))
    boxes = {found["value"]: "disabled" in found for tag, found in page.elements if found.get("name") == "disks"}
    assert [path for path, closed in boxes.items() if closed] == [disks[-2].path, disks[-1].path]
    assert "Holds ext4 data called photos. It would be erased." in page.text


@pytest.mark.parametrize(
    ("count", "layout", "sentence"),
    [
        (4, "", "Choose one of the layouts."),
        (4, "raid5-1", "Choose one of the layouts."),
        (4, "raidz2", "Choose one of the layouts."),
        (4, "raidz2-0", "Choose one of the layouts."),
        (4, "raidz2--1", "Choose one of the layouts."),
        (4, "raidz2-٢", "Choose one of the layouts."),
        (4, "raidz2-²", "Choose one of the layouts."),
        (4, "raidz2-1; reboot", "Choose one of the layouts."),
        (4, "mirror-3", "4 disks cannot be divided into 3 equal groups."),
        (1, "mirror-1", "Mirror needs at least 2 disks in each group."),
        (2, "raidz1-1", "raidz1 needs at least 3 disks in each group."),
        (3, "raidz2-1", "raidz2 needs at least 4 disks in each group."),
        (4, "raidz3-1", "raidz3 needs at least 5 disks in each group."),
        (4, "raidz1-2", "raidz1 needs at least 3 disks in each group."),
    ],
)
@pytest.mark.parametrize("step", ["options", "review"])
def test_a_layout_that_does_not_fit_gets_its_sentence(web, disks, count, layout, sentence, step):
    assert_refused(good(web, step, disks, count, layout=layout), "layout", "layout", sentence)


@pytest.mark.parametrize(
    ("field", "value"), [("compression", "gzip"), ("compression", "-f"), ("ashift", "16"), ("ashift", "x")]
)
def test_an_option_that_is_none_gets_its_sentence(web, disks, field, value):
    response = good(web, "review", disks, **{field: value})
    assert_refused(response, "options", field, "Select a valid choice.")


@pytest.mark.parametrize(
    ("query", "step"),
    [("", "name"), ("step=elsewhere", "name"), ("step=review", "name"), ("step=layout&name=tank", "disks"), ("step=%00", "name")],
)  # fmt: skip
def test_a_step_cannot_be_skipped(web, disks, query, step):
    assert step_of(web.get(f"{URL}?{query}")) == step


def test_walking_through_shows_each_question_and_makes_nothing_before_the_review_is_confirmed(web, disks):
    for step in ("name", "disks", "layout", "options", "review"):
        response = good(web, step, disks)
        assert (response.status_code, step_of(response)) == (200, step)
    assert not Job.objects.exists()


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


@pytest.fixture
def answered(web, disks) -> list[Page]:
    """The pages of a walk with answers that are not the proposed ones; the last is the review."""
    pages = [Page(web.get(URL))]
    pages.append(Page(web.get(submit(pages[-1], name="attic2"))))
    pages.append(Page(web.get(submit(pages[-1], disks=[one.path for one in disks[:4]]))))
    pages.append(Page(web.get(submit(pages[-1], layout="raidz1-1"))))
    pages.append(Page(web.get(submit(pages[-1], encrypted="on", compression="zstd", ashift="13", atime="on"))))
    return pages


def test_the_answers_of_every_step_arrive_at_the_review(answered):
    text = answered[-1].text
    assert "The pool attic2: raidz1 of 4 disks" in text
    for piece in ("-o ashift=13", "compression=zstd", "atime=on", "encryption=", "attic2 raidz1"):
        assert piece in text


def test_going_back_step_by_step_keeps_every_answer_and_so_does_coming_again(web, disks, answered):
    pages = [answered[-1]]
    for _ in range(4):
        pages.append(Page(web.get(back(pages[-1]))))
    assert values(pages[-1])["name"] == ["attic2"]
    assert values(pages[-2])["disks"] == [one.path for one in disks[:4]]
    assert values(pages[-3])["layout"] == ["raidz1-1"]
    assert values(pages[-4])["encrypted"] == ["on"]
    page = pages[-1]
    for step in ("disks", "layout", "options"):
        page = Page(web.get(submit(page)))
        assert values(page)["answered"][-1] == step
    kept = values(page)
    assert [kept[name] for name in ("encrypted", "compression", "ashift", "atime")] == [
        ["on"],
        ["zstd"],
        ["13"],
        ["on"],
    ]
    assert len(kept["answered"]) == 4


def test_an_error_keeps_every_other_answer(web, disks, answered):
    there = dict(parse_qsl(urlsplit(back(answered[-1])).query))
    page = Page(web.get(URL, {**there, "disks": [one.path for one in disks[:4]], "step": "review", "name": "log"}))
    kept = values(page)
    assert kept["name"] == ["log"]
    assert (kept["encrypted"], kept["layout"], len(kept["disks"])) == (["on"], ["raidz1-1"], 4)


def test_another_number_of_disks_gets_a_layout_that_fits_it(web, disks, answered):
    page = Page(web.get(back(answered[-1])))
    for _ in range(2):
        page = Page(web.get(back(page)))
    page = Page(web.get(submit(page, disks=[one.path for one in disks[:2]])))
    assert values(page)["layout"] == ["mirror-1"]
    assert "cannot" not in page.text


def test_an_empty_box_says_that_there_is_no_free_disk(web, calm):
    rows.put(pools=[], disks=[rows.SYSTEM_DISK])
    assert "There is no free disk in this box." in text_of(web.get(URL))


def test_a_missing_zfs_module_is_said_before_anything_is_planned(web, disks):
    from web.inventory import store

    store.checked("zfs", changed=False, error="The ZFS module is not loaded, so no pool can be used.")
    response = good(web, "review", disks)
    assert response.status_code == 400
    assert "The ZFS module is not loaded on this system, so no pool can be made." in text_of(response)


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
    assert "Nothing can bring back what the disks held before." in page.text
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


def test_every_layout_that_is_offered_leads_to_a_review(web, disks):
    for count in range(1, 5):
        page = Page(good(web, "layout", disks, count))
        offered = [found["value"] for _tag, found in page.elements if found.get("name") == "layout"]
        assert offered
        for layout in offered:
            assert step_of(good(web, "review", disks, count, layout=layout)) == "review"


def test_exactly_one_layout_is_recommended_and_chosen(web, disks):
    for count in range(1, 5):
        page = Page(ask(web, "layout", disks[:count], name="tank"))
        assert page.text.count("recommended") == 1
        assert sum("checked" in found for _tag, found in page.elements if found.get("name") == "layout") == 1
