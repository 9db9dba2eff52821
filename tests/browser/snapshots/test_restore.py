"""A user restores a deleted file and a deleted folder, and previews them."""

from __future__ import annotations

import base64

from playwright.sync_api import expect

from tests.browser import steps
from tests.visitor import create_pool, disk_paths

# One red pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def test_user_restores_deleted_file_and_folder(page, appliance):
    assert base64.b64decode(PNG).startswith(b"\x89PNG")
    steps.set_up(page, appliance)
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    appliance.run("zfs", "create", "tank/photos")
    appliance.shell(
        f"cd /tank/photos && mkdir trip && echo {PNG} | base64 -d > trip/red.png && echo dear anna > letter.txt"
    )
    appliance.run("zfs", "snapshot", "tank/photos@then")
    appliance.shell("rm -r /tank/photos/trip /tank/photos/letter.txt")

    page.goto("/folders/")
    page.get_by_role("link", name="tank/photos", exact=True).click(timeout=120_000)
    page.get_by_role("link", name="See the snapshots").click()
    page.get_by_role("link", name="Restore files").click(timeout=120_000)
    page.get_by_role("list").filter(has_text="then").get_by_role("link").first.click()
    expect(page.get_by_text("deleted since").first).to_be_visible()
    page.get_by_role("link", name="letter.txt", exact=True).click()
    expect(page.get_by_text("dear anna")).to_be_visible()
    page.get_by_role("link", name="Restore", exact=True).click()
    page.get_by_label("In its own place", exact=False).check()
    page.get_by_role("button", name="Restore").click()
    steps.finished(page)
    assert appliance.run("cat", "/tank/photos/letter.txt") == "dear anna\n"

    page.goto("/snapshots/")
    page.get_by_role("link", name="then", exact=True).click()
    page.get_by_role("link", name="Browse").click()
    page.get_by_role("link", name="trip", exact=True).click()
    page.get_by_role("link", name="red.png", exact=True).click()
    picture = page.get_by_role("img", name="red.png as it was then")
    expect(picture).to_have_js_property("naturalWidth", 1)
    page.get_by_role("link", name="trip", exact=True).click()
    page.get_by_role("link", name="Restore this folder").click()
    page.get_by_label("In its own place", exact=False).check()
    page.get_by_role("button", name="Restore").click()
    steps.finished(page)
    assert appliance.run("ls", "/tank/photos/trip").strip() == "red.png"

    # On a phone nothing has to be scrolled sideways.
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto("/snapshots/")
    page.get_by_role("link", name="then", exact=True).click()
    for link, heading in (("Browse", "tank/photos"), ("What changed since", "What changed in tank/photos")):
        page.get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), link
        page.go_back()
        expect(page.get_by_role("heading", name="tank/photos@then")).to_be_visible()


def test_lost_file_is_back_after_four_clicks(page, appliance):
    """From the folder's page: restore files, search, the file, restore."""
    steps.set_up(page, appliance)
    appliance.shell("mkdir -p '/tank/photos/Summer 2026' && echo beach > '/tank/photos/Summer 2026/Beach.txt'")
    appliance.run("zfs", "snapshot", "tank/photos@summer")
    appliance.shell("rm -r '/tank/photos/Summer 2026'")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/folders/")
    page.get_by_role("link", name="tank/photos", exact=True).click(timeout=120_000)

    hand = steps.Hand()
    hand.click(page.get_by_role("link", name="Restore files"))
    expect(page.get_by_role("heading", name="Restore files from tank/photos")).to_be_visible()
    hand.fill(page.get_by_label("Name of the file or folder"), "beach")
    hand.click(page.get_by_role("button", name="Search"))
    expect(page.get_by_text("deleted since").first).to_be_visible()
    hand.click(page.get_by_role("link", name="Summer 2026/Beach.txt", exact=True))
    hand.click(page.get_by_role("button", name="Restore the version of"))
    steps.finished(page)
    assert hand.clicks <= 4
    assert hand.fields <= 1
    assert appliance.run("cat", "/tank/photos/Summer 2026/Beach.txt") == "beach\n"
