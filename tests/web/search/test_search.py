"""The search of the header: it leads to pools, folders, disks, users, shares, pages and acts, at the same cost for every box."""

from __future__ import annotations

import re

import pytest

from tests.web import rows
from tests.web.system.test_queries import queries
from web.search.entries import MOST, find_entries

HTMX = {"HX-Request": "true"}


@pytest.fixture
def box(calm) -> None:
    rows.recorded_box()


def found(text: str) -> list[str]:
    return [entry.words for entry in find_entries(text)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("tank", "tank"),
        ("scrub tank", "Scrub tank"),
        ("TANK scrub", "Scrub tank"),
        ("replace a disk", "Replace a disk"),
        ("add a user", "Add a user"),
        ("new user", "Add a user"),
        ("smtp", "Notifications"),
        ("lost file", "Restore files"),
    ],
)
def test_pages_and_acts_are_found_by_their_words(box, text, first):
    assert found(text)[0] == first


def test_disks_are_found_by_bay_model_and_serial(box):
    for text in ("bay 1", "WD20EARS", "WCAZA0000001"):
        assert any(entry.kind == "disk" for entry in find_entries(text)), text


def test_every_result_leads_to_a_page(box, web):
    for text in ("", "tank", "disk", "a"):
        for entry in find_entries(text):
            assert web.get(entry.url).status_code == 200, entry


def test_results_end_at_twenty_and_cost_the_same_for_many(web, calm):
    costs = []
    for count in (2, 60):
        rows.large_box(count)
        web.get("/search/")
        costs.append(len(queries(web, "/search/?q=a")))
    assert costs[0] == costs[1]
    assert len(find_entries("a")) == MOST


def test_list_for_the_field_is_only_a_list(web, box):
    text = web.get("/search/", {"q": "tank"}, headers=HTMX).content.decode()
    assert "<html" not in text
    assert text.count('role="option"') == len(re.findall(r'id="found-\d+"', text)) > 0
    assert "Nothing found" in web.get("/search/", {"q": "zzz"}, headers=HTMX).content.decode()


def test_page_works_without_script(web, box):
    page = web.get("/")
    assert 'action="/search/"' in page.content.decode()
    assert "Scrub tank" in web.get("/search/", {"q": "scrub"}).content.decode()
    assert "Nothing found" in web.get("/search/", {"q": "zzz"}).content.decode()


@pytest.mark.parametrize("text", ["%", "_", "'", '"', "<script>alert(1)</script>", "x" * 5000, "\0", "ÄÖ", " "])
def test_odd_words_are_no_error_and_stay_text(web, box, text):
    for headers in ({}, HTMX):
        page = web.get("/search/", {"q": text}, headers=headers)
        assert page.status_code == 200
        assert "<script>alert" not in page.content.decode()
