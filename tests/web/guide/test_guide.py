"""The guide: every chapter has its page and a picture of a page as it is today; links lead
somewhere; nothing asks the box."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from appliance.benchmarks.box_settings.catalogue import SETTINGS
from appliance.shares.iscsi import part
from appliance.system import mtu
from tests.dev.builders import recorded_disks
from tests.dev.guide_pictures import IMAGES, MOST_BYTES, SHOTS, WORDS, headings
from tests.messages.collect import messages
from tests.web.reading import text_of
from tests.web.routes import TANK
from web.benchmarks import client_models
from web.guide.chapters import CHAPTERS
from web.pools import growth_plans

SLUGS = [chapter.slug for chapter in CHAPTERS]
GUIDE = ("templates/guide/", "web/guide/")
# What chapters quote that no page has as a message of its own, and what it is.
QUOTED = {
    "Enable CHAP log on": "Windows",
    "Perform mutual authentication": "Windows",
    "Restore previous versions": "Windows",
    "Tested 3 March 2026, clean.": "an example of a message with arguments",
}


def test_every_chapter_has_a_picture_and_no_picture_is_left_over():
    assert [shot.slug for shot in SHOTS] == SLUGS
    assert sorted(path.stem for path in IMAGES.iterdir()) == sorted(SLUGS)
    assert sorted(path.stem for path in WORDS.iterdir()) == sorted(SLUGS)


@pytest.mark.parametrize("slug", SLUGS)
def test_picture_is_small_enough_for_its_page(slug):
    image = (IMAGES / f"{slug}.webp").read_bytes()
    assert image[8:12] == b"WEBP"
    assert len(image) <= MOST_BYTES


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.slug)
def test_picture_shows_the_page_as_it_is_today(opened, shot):
    page = opened(shot.box).get(shot.url)
    assert page.status_code == 200
    now = headings(page.content.decode())
    assert len(now) >= 2
    stored = (WORDS / f"{shot.slug}.txt").read_text().splitlines()
    assert now == stored, "This page has changed. Take the pictures again: make guide"


@pytest.mark.parametrize("slug", SLUGS)
def test_every_link_of_a_chapter_leads_to_a_page(opened, slug):
    web = opened("healthy")
    page = web.get(f"/guide/{slug}/").content.decode().partition("<main")[2].partition("</main>")[0]
    links = set(re.findall(r'href="(/[^"#]*)', page))
    assert len(links) >= 3
    assert {link: status for link in links if (status := web.get(link).status_code) != 200} == {}


def test_chapters_follow_one_another(opened):
    web = opened("healthy")
    listed = text_of(web.get("/guide/"))
    for chapter in CHAPTERS:
        assert str(chapter.title) in listed
    first, last = (web.get(f"/guide/{slug}/").content.decode() for slug in (SLUGS[0], SLUGS[-1]))
    assert 'rel="prev"' not in first and f"/guide/{SLUGS[1]}/" in first
    assert 'rel="next"' not in last and f"/guide/{SLUGS[-2]}/" in last
    assert web.get("/guide/nothing/").status_code == 404


def test_search_finds_a_chapter_by_what_somebody_types(opened):
    assert "Guide: Get back a deleted or changed file" in text_of(opened("healthy").get("/search/?q=undelete"))


def test_what_chapters_quote_is_on_a_page():
    """A button that was renamed is renamed in the guide too."""
    said = [(one.file.startswith(GUIDE), one.message) for one in messages()]
    pages = {message for of_guide, message in said if not of_guide}
    openings = {re.split(r" ?(?:{\w*}|%\(\w+\)s)", message)[0] for message in pages}
    quoted = {words for of_guide, message in said if of_guide for words in re.findall("“([^”]*)”", message)}
    assert len(quoted) > 40
    assert sorted(quoted - pages - openings - set(QUOTED)) == []
    assert sorted(set(QUOTED) - quoted) == []


@pytest.mark.parametrize(
    ("slug", "fact"),
    [
        ("iscsi", f"-T {part.PREFIX}disk1 --login"),
        ("iscsi", f"the secret, of {part.SHORTEST_SECRET} to {part.LONGEST_SECRET} characters"),
        ("client", f"works once, within {client_models.VALID.total_seconds() / 60:.0f} minutes"),
        ("mtu", f"the new value is tried for {mtu.SECONDS} seconds"),
        ("growth", f"when nothing has happened for {growth_plans.STANDS.days} days"),
    ],
)
def test_figures_of_a_chapter_are_those_of_the_code(opened, slug, fact):
    assert fact in text_of(opened("healthy").get(f"/guide/{slug}/"))


def test_half_an_hour_is_when_a_tried_setting_is_back_at_the_latest(opened):
    assert max(setting.seconds for setting in SETTINGS.values()) == 30 * 60
    assert "puts the setting back after half an hour at the latest" in text_of(opened("healthy").get("/guide/client/"))


@pytest.mark.parametrize(
    ("box", "page", "slug"),
    [
        ("empty", f"/disks/{Path(recorded_disks()[0].path).name}/burn-in/", "burn-in"),
        ("many", "/pools/6000/rehearsal/", "rehearsal"),
        ("full", f"/pools/{TANK}/growth/", "growth"),
        ("healthy", "/folders/3157562817/iscsi/", "iscsi"),
        ("healthy", "/benchmarks/client/", "client"),
        ("healthy", "/system/ports/eno1/mtu/", "mtu"),
    ],
)
def test_page_leads_to_its_chapter(opened, box, page, slug):
    answer = opened(box).get(page)
    assert answer.status_code == 200
    assert f'href="/guide/{slug}/"' in answer.content.decode()
