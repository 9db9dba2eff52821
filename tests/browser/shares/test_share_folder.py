"""From a pool to a written file with few clicks: the one form that shares a folder."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from tests.browser import steps
from tests.system import sharing
from tests.visitor import Visitor

STATE = "pool"
PASSWORD = "dora's own words"
MOST_CLICKS, MOST_FIELDS = 5, 4


def open_overview(page: Page, appliance) -> None:
    """Signed in, on the overview of a box with a pool."""
    visitor = Visitor(appliance)
    visitor.set_up()
    sharing.make_pool(appliance, "tank")
    visitor.wait_until("/folders/", "tank", timeout=90)
    steps.sign_in(page)
    page.goto("/")


def test_a_file_is_written_after_at_most_five_clicks(page, appliance, tmp_path: Path):
    open_overview(page, appliance)
    hand = steps.Hand()
    steps.share_new_folder(page, hand, folder="films", user="dora", password=PASSWORD)
    assert hand.clicks <= MOST_CLICKS
    assert hand.fields <= MOST_FIELDS
    steps.write_file(appliance, tmp_path, share="films", user="dora", password=PASSWORD)
