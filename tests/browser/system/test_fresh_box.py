"""From a box that nobody has set up to a file written on it, with few clicks and few fields to fill."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser import steps

STATE = "new"
PASSWORD = "dora's own words"
MOST_CLICKS, MOST_FIELDS = 14, 8


def test_file_is_written_on_a_fresh_box_after_at_most_fourteen_clicks(page, appliance, tmp_path: Path):
    hand = steps.Hand()
    steps.set_up(page, appliance, hand)
    hand.click(page.get_by_role("link", name="Create a pool").first)
    expect(page.get_by_label("Name of the pool")).to_have_value("tank")
    hand.click(page.get_by_role("button", name="Continue"))
    expect(page.get_by_text("recommended", exact=True)).to_have_count(1)
    hand.click(page.get_by_role("button", name="Continue"))
    hand.click(page.get_by_role("button", name="Review"))
    steps.confirm(page, "Create the pool tank", hand)
    steps.finished(page)
    hand.click(page.get_by_role("link", name="Overview"))
    steps.share_new_folder(page, hand, folder="films", user="dora", password=PASSWORD)
    assert hand.clicks <= MOST_CLICKS
    assert hand.fields <= MOST_FIELDS
    steps.write_file(appliance, tmp_path, share="films", user="dora", password=PASSWORD)
