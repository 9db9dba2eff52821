"""A report that is handed on prints as a report: no navigation and no buttons, but all that it found, on one sheet."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.gallery.window import Gallery
from tests.web.routes import BURN_IN

ONLY_ON_A_SCREEN = (".app-header", ".app-nav", ".app-footer")
FAILED, OPEN = uuid.UUID(int=2), uuid.UUID(int=3)


@pytest.fixture
def page(gallery: Gallery) -> Iterator[Page]:
    gallery.open_box("healthy")
    assert gallery.context
    window = gallery.context.new_page()
    window.set_viewport_size({"width": 1280, "height": 900})
    yield window
    window.close()


def open_burn_in(page: Page, key: object) -> None:
    answer = page.goto(f"/disks/burn-ins/{key}/")
    assert answer is not None
    assert answer.ok


def print_to_paper(page: Page, theme: str = "light") -> None:
    page.set_viewport_size({"width": 718, "height": 1000})  # what the margins leave of A4
    page.emulate_media(media="print", color_scheme=theme)  # type: ignore[arg-type]


def vanish(page: Page, *found: Locator) -> None:
    """Check that each is on the screen and not on paper."""
    for one in found:
        expect(one).to_be_visible()
    print_to_paper(page)
    for one in found:
        expect(one).to_be_hidden()


def test_report_of_a_failed_disk_prints_its_verdict_serial_number_and_tables(page):
    open_burn_in(page, FAILED)
    hint = page.get_by_text("Print this page to attach it to a warranty claim.")
    vanish(page, *map(page.locator, ONLY_ON_A_SCREEN), hint)
    expect(page.get_by_role("heading", name="Do not use this disk. Return it if it is under warranty.")).to_be_visible()
    expect(page.get_by_text("WD-WCAZA0000002", exact=True)).to_be_visible()
    counts, regions = page.locator("main table").all()
    for table, heads in ((counts, ["Figure", "Before", "After"]), (regions, ["Region", "Where", "What was found"])):
        assert table.get_by_role("columnheader").all_inner_texts() == heads
        # A table and no list of cards, as on a phone.
        assert table.locator("td").first.evaluate("cell => getComputedStyle(cell).display") == "table-cell"
    expect(regions.get_by_text("could not be read back at byte 295000000000")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Speed of each region"))).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_burn_in_that_is_not_over_prints_without_its_buttons(page):
    open_burn_in(page, OPEN)
    vanish(page, *(page.get_by_role("button", name=name) for name in ("Resume", "Stop")))
    expect(page.get_by_text("It has stopped here.")).to_be_visible()
    assert [one for one in page.locator("main").get_by_role("button").all() if one.is_visible()] == []


@pytest.mark.parametrize("key", [BURN_IN, FAILED, OPEN])
def test_report_is_on_one_sheet(page, key):
    open_burn_in(page, key)
    sheets = re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))
    assert len(sheets) == 1


def test_dark_theme_prints_dark_on_white(page):
    open_burn_in(page, FAILED)
    colours = []
    for theme in ("light", "dark"):
        print_to_paper(page, theme)
        colours.append(
            page.evaluate(
                "[...document.querySelectorAll('body, h1, td, .card')].map((one) => "
                "[getComputedStyle(one).color, getComputedStyle(one).backgroundColor])"
            )
        )
    assert colours[0] == colours[1]
    page.emulate_media(media="screen", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") != colours[0][0][0]
