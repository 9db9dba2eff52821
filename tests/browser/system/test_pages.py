"""Every page, as it looks: on a desk and on a phone, by day and by night."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser import steps
from tests.system.shapes import page_of
from tests.visitor import create_pool, disk_paths

STATE = "new"

# A hundred full screens, each read by axe: minutes under emulation.

SCREENS = Path("build/screens")
PAGES = (
    "/",
    "/pools/",
    "/pools/new/",
    "/pools/import/",
    "/pools/replacements/",
    "{pool}",
    "{pool}settings/",
    "{pool}history/?show=all",
    "{pool}events/",
    "{pool}reports/",
    "{pool}growth/",
    "{pool}schedule/scrub/",
    "{pool}replace/",
    "{pool}add/expand/",
    "{pool}add/cache/",
    "{pool}end/destroy/",
    "/disks/",
    "/disks/bays/",
    "{disk}health/",
    "/alerts/",
    "/alerts/mail/",
    "/alerts/kinds/",
    "/alerts/tests/",
    "/folders/",
    "/folders/new/",
    "/users/",
    "/users/new/",
    "/snapshots/restore/",
    "/search/?q=tank",
    "/jobs/",
    "/account/sessions/",
    "/account/password/",
)
WIDTHS = (1280, 360)
THEMES = ("light", "dark")
# Serious enough that somebody could not use the page.
GRAVE = {"critical", "serious"}


@pytest.fixture(scope="module")
def signed_in(browser, appliance):
    """A signed-in window on an appliance with a pool, a folder and an account."""
    context = browser.new_context(base_url=appliance.address, ignore_https_errors=True)
    context.set_default_timeout(120_000)
    window = context.new_page()
    steps.set_up(window, appliance)
    create_pool(appliance, "-o", "ashift=12", "tank", "raidz2", *disk_paths(appliance, 1, 2, 3, 4, 5))
    appliance.run("zfs", "create", "tank/photos")
    steps.create_account(window, name="anna", password="anna's own words")
    steps.share_over_smb(window, folder="tank/photos", user="anna")
    yield window
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_and_can_be_read_on_a_desk_and_a_phone_by_day_and_by_night(signed_in, appliance, path):
    SCREENS.mkdir(parents=True, exist_ok=True)
    signed_in.set_viewport_size({"width": 1280, "height": 900})
    disk = f"/disks/{disk_paths(appliance, 1)[0].rsplit('/', 1)[-1]}/"
    signed_in.goto(path.replace("{pool}", page_of(appliance, "tank")).replace("{disk}", disk))
    for width in WIDTHS:
        signed_in.set_viewport_size({"width": width, "height": 900})
        assert signed_in.evaluate("document.documentElement.scrollWidth") <= width, f"{path} is wider than {width} px"
        for theme in THEMES:
            signed_in.emulate_media(color_scheme=theme, reduced_motion="reduce")
            name = re.sub(r"[^a-z]+", "-", path).strip("-") or "overview"
            signed_in.screenshot(path=SCREENS / f"{name}-{width}-{theme}.png", full_page=True)
            found = Axe().run(signed_in).response["violations"]
            grave = [
                f"{problem['id']}: {problem['nodes'][0]['html'][:200]}"
                for problem in found
                if problem["impact"] in GRAVE
            ]
            assert not grave, f"{path} at {width} px, {theme}: {grave}"


def test_a_page_can_be_used_with_the_keyboard_alone(signed_in):
    """From the top of the overview, the first stop leads past the navigation; focus is always visible."""
    signed_in.goto("/")
    signed_in.keyboard.press("Tab")
    assert signed_in.evaluate("document.activeElement.textContent.trim()") == "Skip to the page"
    signed_in.keyboard.press("Enter")
    assert signed_in.evaluate("document.activeElement.id") == "main"
    signed_in.keyboard.press("Tab")
    outline = signed_in.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
