"""The command palette with the keyboard alone."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser import steps
from tests.visitor import create_pool, disk_paths


def test_palette_is_used_with_the_keyboard_alone(page, appliance):
    steps.set_up(page, appliance)
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    page.goto("/pools/")
    expect(page.get_by_role("link", name="tank", exact=True).first).to_be_visible(timeout=120_000)
    page.goto("/")

    field = page.get_by_role("combobox", name="Search this box")
    options = page.get_by_role("option")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("scrub tank")
    expect(options.first).to_contain_text("Scrub tank")
    expect(options.first).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-expanded", "true")
    expect(field).to_have_attribute("aria-activedescendant", "found-1")
    page.keyboard.press("Escape")
    expect(options.first).to_be_hidden()
    expect(field).to_have_attribute("aria-expanded", "false")

    page.keyboard.press("Control+a")
    page.keyboard.type("tank")
    expect(options.nth(1)).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="tank", level=1)).to_be_visible()
    page.wait_for_load_state()  # A heading is seen before the script that listens to keys has run.

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type("add a user")
    expect(options.first).to_contain_text("Add a user")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/users/new/$"))
