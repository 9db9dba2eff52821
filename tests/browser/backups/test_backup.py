"""A user backs a folder up, deletes a file, and gets it back out of the copy."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser import steps
from tests.visitor import create_pool, disk_paths


def test_folder_is_backed_up_and_a_deleted_file_comes_back_out_of_the_copy(page, appliance):
    steps.set_up(page, appliance)
    for name, disk in zip(("tank", "safe"), disk_paths(appliance, 1, 2), strict=True):
        create_pool(appliance, "-o", "ashift=12", "-m", f"/{name}", name, disk)
    appliance.shell("zfs create tank/photos; echo dear anna > /tank/photos/letter.txt; sync")

    page.goto("/pools/")
    expect(page.get_by_role("link", name="safe", exact=True)).to_be_visible(timeout=120_000)
    page.goto("/backups/")
    page.get_by_role("link", name="Back up tank/photos", exact=True).click(timeout=120_000)
    page.get_by_label("safe", exact=False).check()
    page.get_by_role("button", name="Next").click()
    steps.confirm(page, re.compile("backup", re.IGNORECASE))
    steps.finished(page)

    page.goto("/backups/")
    expect(page.get_by_role("row").filter(has_text="tank/photos")).to_contain_text("good", timeout=240_000)
    appliance.run("rm", "/tank/photos/letter.txt")
    page.get_by_role("link", name="tank/photos", exact=True).click()
    page.locator("h2:has-text('Copies') + ul").get_by_role("link").first.click()
    page.get_by_role("link", name="letter.txt", exact=True).click()
    expect(page.get_by_text("dear anna")).to_be_visible()
    page.get_by_role("link", name="Restore", exact=True).click()
    expect(page.get_by_text("goes into the original folder, tank/photos")).to_be_visible()
    page.get_by_label("In its own place", exact=False).check()
    page.get_by_role("button", name="Restore").click()
    steps.finished(page)
    assert appliance.run("cat", "/tank/photos/letter.txt") == "dear anna\n"
