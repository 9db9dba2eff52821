"""The wizard as a person meets it: the advisor's proposal by keyboard alone, a key file, and how its pages look."""

from __future__ import annotations

import json

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from deploy.image.machine import wait_for
from tests.browser import steps
from tests.visitor import blank, disk_paths

MOST_TABS = 120
GRAVE = {"critical", "serious"}


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the thing with that text has the focus; fails where the keyboard does not lead there."""
    for _ in range(MOST_TABS):
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"the focus on {name} cannot be seen"
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not lead to {name}")


def press(page: Page, name: str) -> None:
    tab_to(page, name)
    page.keyboard.press("Enter")


def test_a_pool_is_made_from_the_proposal_with_the_keyboard_alone(page, appliance):
    steps.set_up(page, appliance)
    page.goto("/pools/")
    press(page, "Create a pool")
    expect(page.get_by_label("Name of the pool")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("tank")
    page.keyboard.press("Enter")

    # The proposal for all six disks; arrows move among the layouts, and back to the recommended one.
    expect(page.get_by_text("recommended", exact=True)).to_have_count(1)
    best = page.get_by_role("radio", name="Balanced raidz2 of 6", exact=True)
    expect(best).to_be_checked()
    for _ in range(MOST_TABS):
        if page.evaluate("document.activeElement.name") == "layout":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(best).not_to_be_checked()
    page.keyboard.press("ArrowUp")
    expect(best).to_be_checked()
    press(page, "Continue")

    # No disk is left for a log, cache or spare, so these are not asked for.
    expect(page.get_by_label("Encrypt everything in it")).to_be_visible()
    press(page, "Review")
    expect(page.get_by_role("heading", name="What will happen")).to_be_visible()
    expect(page.locator("li[aria-current=step]")).to_have_text("Review")
    press(page, "Create the pool tank")
    steps.finished(page)
    status = json.loads(appliance.run("zpool", "status", "-j", "--json-int", "tank"))["pools"]["tank"]
    assert "raidz2-0" in next(iter(status["vdevs"].values()))["vdevs"]


def test_a_key_is_saved_before_the_pool_is_made_and_every_page_of_the_wizard_can_be_read(page, appliance):
    appliance.run("zpool", "destroy", "tank")
    blank(appliance, *disk_paths(appliance, 1, 2, 3, 4, 5, 6))
    steps.sign_in(page)
    wait_for("six free disks", lambda: six_are_proposed(page), timeout=120, every=2)

    page.goto("/pools/new/")
    page.get_by_label("Name of the pool").fill("safe")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("link", name="Choose the disks myself")).to_be_visible()
    look(page)
    page.get_by_role("link", name="Compare all layouts").click()
    expect(page.get_by_role("radio", name="Stripe of 6", exact=True)).to_be_visible()
    look(page)
    page.get_by_role("link", name="Choose the disks myself").click()
    for _ in range(3):
        page.locator("input[name=disks]:checked").first.uncheck()
    page.get_by_role("button", name="Continue").click()
    look(page)
    page.get_by_role("button", name="Continue").click()
    look(page)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Unlock it with a key file instead of a passphrase").check()
    page.get_by_role("button", name="Review").click()
    # Said at the field, with everything else kept.
    expect(page.get_by_role("link", name="A key file needs encryption")).to_be_visible()
    expect(page.get_by_label("Unlock it with a key file instead of a passphrase")).to_be_checked()
    page.get_by_label("Encrypt everything in it").check()
    page.get_by_role("button", name="Review").click()

    page.get_by_role("button", name="Create the pool safe").click()
    expect(page.get_by_role("link", name="Save the key first, then choose the file that you saved.")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save safe.key").click()
    assert saved.value.suggested_filename == "safe.key"
    page.get_by_label("The key file you have just saved").set_input_files(saved.value.path())
    look(page)
    page.get_by_role("button", name="Create the pool safe").click()
    steps.finished(page)
    assert appliance.run("zfs", "get", "-H", "-o", "value", "keyformat", "safe").strip() == "hex"


def six_are_proposed(page: Page) -> bool:
    page.goto("/pools/new/?name=safe&step=layout")
    return page.get_by_role("heading", name="6 disks").count() == 1


def look(page: Page) -> None:
    """Nothing is wider than the window on a desk or a phone, and axe finds nothing grave by day or by night."""
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{page.url} is wider than {width} px"
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            grave = [
                f"{problem['id']}: {problem['nodes'][0]['html'][:200]}"
                for problem in Axe().run(page).response["violations"]
                if problem["impact"] in GRAVE
            ]
            assert not grave, f"{page.url} at {width} px, {theme}: {grave}"
    page.set_viewport_size({"width": 1280, "height": 900})
