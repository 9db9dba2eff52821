"""A user runs a benchmark, follows it, and reads the result on a screen, on a phone and on paper."""

from __future__ import annotations

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.system.measuring import nothing_left
from tests.visitor import disk_paths

LONGEST = 1_200_000  # milliseconds for two cases in an emulated machine
GRAVE = {"critical", "serious"}


def choose(page: Page, group: str, *labels: str) -> None:
    """Tick only these checkboxes of the group."""
    boxes = page.get_by_role("group", name=group, exact=True)
    while boxes.locator("input:checked").count():
        boxes.locator("input:checked").first.uncheck()
    for label in labels:
        boxes.get_by_role("checkbox", name=re.compile(label)).check()


def test_benchmark_runs_and_its_result_is_readable_on_a_phone_and_on_paper(page, appliance):
    steps.set_up(page, appliance)
    disks = disk_paths(appliance, 1, 2)
    page.goto("/benchmarks/")
    page.get_by_role("link", name="Sectors: ashift 9 against 12").click()
    choose(page, "Which disks?", "^Bay 1:", "^Bay 2:")
    choose(page, "Layouts", "^mirror$")
    choose(page, "What is measured", "^Large files, writing$")
    page.get_by_label("Data per run").fill("32 MiB")
    page.get_by_label("Runs of each case").fill("2")
    page.locator("summary", has_text="More settings").click()
    page.get_by_label("Limit memory while it is measured").uncheck()
    page.get_by_label("Bypass the memory cache").check()
    page.get_by_role("button", name="Review").click()

    expect(page.get_by_role("heading", name="These disks are written to")).to_be_visible()
    expect(page.get_by_text("2 cases, each 2 times")).to_be_visible()
    for box in page.get_by_role("textbox", name=re.compile("^To have")).all():
        word = re.search(r"type (\S+)$", box.evaluate("found => found.labels[0].textContent.trim()"))
        assert word
        box.fill(word[1])
    page.get_by_role("button", name="Start the benchmark").click()

    # While it runs, the page updates itself and shows progress and I/O.
    expect(page.get_by_role("progressbar", name="How far it is")).to_be_visible()
    expect(page.locator(".page-head .state")).to_have_text("done", timeout=LONGEST)
    expect(page.get_by_role("heading", name="What this means")).to_be_visible()
    expect(page.locator("svg.measured")).to_have_count(2)
    expect(page.get_by_text("WD-WCAZA0000001").first).to_be_visible()

    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found = [one["id"] for one in Axe().run(page).response["violations"] if one["impact"] in GRAVE]
        assert not found, (theme, found)

    # Another case as the baseline, by its change.
    page.locator("td a", has_text="%").first.click()
    expect(page).to_have_url(re.compile("baseline=1"))

    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    bar = page.locator("svg.measured").first.bounding_box()
    assert bar
    assert bar["x"] + bar["width"] <= 320

    page.set_viewport_size({"width": 718, "height": 1000})  # what the margins leave of A4
    page.emulate_media(media="print")
    for gone in (
        page.locator(".app-nav"),
        page.get_by_role("link", name="Markdown, for a forum"),
        page.locator("#forget"),
    ):
        expect(gone).to_be_hidden()
    expect(page.get_by_role("columnheader", name="Median")).to_be_visible()
    assert page.locator(".table tbody td").first.evaluate("cell => getComputedStyle(cell).display") == "table-cell"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    nothing_left(appliance, *disks)
