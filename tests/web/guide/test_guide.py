"""The guide: every chapter has its page and a picture of a page as it is today; links lead somewhere; nothing asks the box."""

from __future__ import annotations

import re

import pytest

from tests.dev.guide_pictures import IMAGES, MOST_BYTES, SHOTS, WORDS, headings
from tests.web.reading import text_of
from web.guide.chapters import CHAPTERS

SLUGS = [chapter.slug for chapter in CHAPTERS]


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
        assert chapter.title in listed
    first, last = (web.get(f"/guide/{slug}/").content.decode() for slug in (SLUGS[0], SLUGS[-1]))
    assert 'rel="prev"' not in first and f"/guide/{SLUGS[1]}/" in first
    assert 'rel="next"' not in last and f"/guide/{SLUGS[-2]}/" in last
    assert web.get("/guide/nothing/").status_code == 404


def test_search_finds_a_chapter_by_what_somebody_types(opened):
    assert "Guide: Get back a deleted or changed file" in text_of(opened("healthy").get("/search/?q=undelete"))
