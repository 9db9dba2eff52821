"""A user sets a snapshot schedule, sees first what it does, and destroys old snapshots."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser import steps
from tests.visitor import create_pool, disk_paths

OLD = 25  # more than a page


def test_user_sets_schedule_and_destroys_old_snapshots(page, appliance):
    steps.set_up(page, appliance)
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    appliance.run("zfs", "create", "tank/photos")
    appliance.shell(f"for n in $(seq {OLD}); do zfs snapshot tank/photos@old$n; done")

    page.goto("/folders/")
    page.get_by_role("link", name="tank/photos", exact=True).click()
    page.get_by_role("link", name="See the snapshots").click()
    expect(page.get_by_text(f"{OLD} snapshots, which hold")).to_be_visible()
    shown = page.url

    page.get_by_role("link", name="Set a schedule").click()
    page.get_by_label("Snapshots to keep, taken every hour").fill("3")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="No snapshots will be destroyed")).to_be_visible()
    expect(page.get_by_role("heading", name="What will exist on a day like today")).to_be_visible()
    page.get_by_role("button", name="Save this schedule").click()
    steps.confirm(page, "Set the snapshot schedule of tank/photos")  # it has snapshots, so the password is asked for
    steps.finished(page)

    page.goto("/snapshots/policies/")
    row = page.get_by_role("row", name="tank/photos")
    expect(row).to_contain_text("3 hourly")
    expect(row).to_contain_text("its own")

    page.goto(shown)
    page.get_by_label("Name begins with").fill("old")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("button", name="Destroy all matching").click()
    expect(page.get_by_text("Space freed")).to_be_visible()
    page.get_by_label("type tank/photos").fill("tank/photos")
    steps.confirm(page, f"Destroy {OLD} snapshots of tank/photos")
    steps.finished(page)
    assert "@old" not in appliance.run("zfs", "list", "-H", "-t", "snapshot", "-o", "name", "tank/photos")

    # On a phone nothing has to be scrolled sideways.
    page.set_viewport_size({"width": 320, "height": 640})
    for address in (
        "/snapshots/policies/",
        f"{shown}space/",
        f"{shown}policy/",
        f"{shown}policy/follow/",
        f"{shown}bookmarks/",
        "/snapshots/space/",
        "/snapshots/holds/",
    ):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), address
