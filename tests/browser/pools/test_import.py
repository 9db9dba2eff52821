"""A pool that came with its disks is brought in with the mouse, and its share is offered, not on."""

from __future__ import annotations

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.visitor import create_pool, disk_paths

# Three minutes, most of them axe's: with the soak tests.

GRAVE = {"critical", "serious"}
SHARE = '{"smb":{"name":"photos","write":["anna"]}}'


def assert_readable(page: Page) -> None:
    """Nothing that would keep somebody from using the page, on a desk and on a phone."""
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
        grave = [found["id"] for found in Axe().run(page).response["violations"] if found["impact"] in GRAVE]
        assert not grave, (page.url, grave)
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_pool_is_found_reviewed_and_brought_in(page, appliance):
    create_pool(appliance, "-o", "ashift=12", "tank", "mirror", *disk_paths(appliance, 1, 2))
    appliance.run("zfs", "create", "tank/photos")
    appliance.run("zfs", "set", f"larder:share={SHARE}", "tank/photos")
    appliance.put("/tank/photos/holiday.txt", "sun\n")
    appliance.run("zpool", "export", "tank")

    steps.set_up(page, appliance)
    page.goto("/pools/")
    page.get_by_role("link", name="Import a pool").click()
    page.get_by_role("button", name="Search for pools").click()
    expect(page.get_by_role("link", name="Import tank")).to_be_visible()
    page.get_by_text("Disks and layout").click()
    expect(page.get_by_text("mirror-0")).to_be_visible()
    assert_readable(page)

    page.get_by_role("link", name="Import tank").click()
    page.get_by_label("Name on this box").fill("etc")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("alert")).to_contain_text("The system has a folder /etc of its own")
    page.get_by_label("Name on this box").fill("attic")
    assert_readable(page)
    page.get_by_role("button", name="Review").click()
    assert_readable(page)
    page.get_by_role("button", name="Import attic").click()
    steps.finished(page)
    assert appliance.run("cat", "/attic/photos/holiday.txt") == "sun\n"

    page.get_by_role("link", name="See the pool").click()
    page.get_by_role("link", name="attic", exact=True).first.click()
    expect(page.get_by_text(re.compile("asks to be shared as"))).to_be_visible()
    assert_readable(page)
    assert "[photos]" not in appliance.run("cat", "/etc/samba/larder.conf")
