"""A person restarts the box in the browser, leaves the page open, and is told when the box is back."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser import steps


def test_restart_is_followed_on_one_page_until_the_box_is_back(page, appliance):
    steps.set_up(page, appliance)
    page.goto("/system/")
    expect(page.get_by_role("heading", name="Memory and load")).to_be_visible()
    page.get_by_role("link", name="Restart", exact=True).click()
    steps.confirm(page, "Restart the box")
    page.evaluate("window.sameWindow = true")
    expect(page.get_by_text("It is usually back within three minutes.")).to_be_visible()
    expect(page.get_by_text("The box is restarting and does not answer yet.")).to_be_visible()
    expect(page.get_by_text("Done. The box has been started again.")).to_be_visible(timeout=600_000)
    expect(page.get_by_text("The box is restarting and does not answer yet.")).to_be_hidden()
    assert page.evaluate("window.sameWindow"), "it was the same page all the time"
