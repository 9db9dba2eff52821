"""A folder in the browser: create, edit, destroy."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser import steps
from tests.visitor import create_pool, disk_paths


def test_a_folder_is_made_edited_and_destroyed(page, appliance):
    steps.set_up(page, appliance)
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    page.goto("/folders/")
    expect(page.get_by_role("link", name="tank", exact=True)).to_be_visible(timeout=60_000)

    page.goto("/folders/new/?parent=tank")
    page.get_by_label("Name").fill("photos")
    page.get_by_label("What will be in it?").select_option("photos")
    page.get_by_label("Limit").fill("100 MiB")
    page.get_by_role("button", name="Create the folder").click()
    steps.finished(page)
    page.goto("/folders/")
    page.get_by_role("link", name="tank/photos", exact=True).click()
    expect(page.get_by_role("img", name="Where the space goes")).to_be_visible()

    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Change Compression").click()
    page.get_by_label("Compression").select_option("zstd")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Inherit for Compression")).to_be_visible(timeout=60_000)

    page.get_by_role("link", name="Back", exact=True).click()
    page.locator("#folder-more > summary").click()
    page.get_by_role("link", name="Destroy").click()
    expect(page.get_by_text("This is what would be destroyed")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Review").click()
    page.get_by_label("type tank/photos").fill("tank/photos")
    steps.confirm(page, "Destroy tank/photos")
    steps.finished(page)
    assert "tank/photos" not in appliance.run("zfs", "list", "-H", "-o", "name")
