"""Parts of pages that refresh while somebody works on them, and a box that goes away."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, Response, expect

from tests.browser import steps
from tests.system import sharing
from tests.system.shapes import page_of

STATE = "pool"


@pytest.fixture
def signed_in(page, appliance):
    steps.set_up(page, appliance)
    return page


@contextmanager
def refreshed(page: Page) -> Iterator[None]:
    """What is done inside changes facts; afterwards the live part has been brought again."""

    def brought(answer: Response) -> bool:
        here = urllib.parse.urlsplit(page.url).path
        return answer.status in {200, 286} and urllib.parse.urlsplit(answer.url).path == here

    with page.expect_response(brought):
        yield
    page.wait_for_timeout(100)  # htmx settles after 20 milliseconds


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id"))


def test_what_was_typed_and_ticked_survives_a_refresh(signed_in, appliance):
    appliance.run("zfs", "snapshot", "tank/photos@first")
    signed_in.goto(f"/snapshots/of/{sharing.key_of(appliance, 'tank/photos')}/")
    tick = signed_in.get_by_role("checkbox", name="Choose tank/photos@first")
    tick.check()
    with refreshed(signed_in):
        appliance.run("zfs", "snapshot", "tank/photos@second")
    expect(signed_in.get_by_role("checkbox", name="Choose tank/photos@second")).not_to_be_checked()
    expect(tick).to_be_checked()
    assert focused(signed_in) == tick.get_attribute("id")


def test_list_is_filtered_while_a_name_is_typed(signed_in, appliance):
    appliance.run("zfs", "snapshot", "tank/photos@zebra")
    signed_in.goto(f"/snapshots/of/{sharing.key_of(appliance, 'tank/photos')}/")
    expect(signed_in.get_by_role("checkbox", name="Choose tank/photos@zebra")).to_be_visible()
    signed_in.get_by_label("Name begins with").press_sequentially("fir", delay=80)
    expect(signed_in.get_by_role("checkbox", name="Choose tank/photos@zebra")).to_have_count(0)
    expect(signed_in.get_by_role("checkbox", name="Choose tank/photos@first")).to_be_visible()
    expect(signed_in).to_have_url(re.compile("begins=fir"))
    with refreshed(signed_in):
        appliance.run("zfs", "snapshot", "tank/photos@first-again")
    expect(signed_in.get_by_role("checkbox", name="Choose tank/photos@first-again")).to_be_visible()
    assert signed_in.get_by_label("Name begins with").input_value() == "fir"
    assert focused(signed_in) == "begins"


def test_open_details_survive_a_refresh(signed_in, appliance):
    signed_in.goto(page_of(appliance, "tank"))
    details = signed_in.locator("#live details").first
    details.locator("summary").first.click()
    expect(details).to_have_attribute("open", "")
    with refreshed(signed_in):
        appliance.run("zfs", "snapshot", "tank@seen")
    expect(details).to_have_attribute("open", "")


def test_lost_connection_is_told_and_ends(signed_in):
    signed_in.goto("/pools/")
    lost = signed_in.get_by_text("The box does not answer.")
    expect(lost).to_be_hidden()
    signed_in.context.set_offline(True)
    expect(lost).to_be_visible()
    signed_in.context.set_offline(False)
    expect(lost).to_be_hidden()


def test_job_page_comes_to_its_result_by_itself_and_asks_no_more(signed_in, appliance):
    signed_in.goto("/folders/new/?parent=tank")
    signed_in.get_by_label("Name", exact=True).fill("letters")
    signed_in.get_by_role("button", name="Create the folder").click()
    expect(signed_in).to_have_url(re.compile("/jobs/"))
    signed_in.evaluate("window.sameWindow = true")
    steps.finished(signed_in)
    assert signed_in.evaluate("window.sameWindow")
    asked: list[str] = []
    signed_in.on("request", lambda request: asked.append(request.url))
    signed_in.wait_for_timeout(4000)
    assert asked == []


def test_ended_session_leads_to_the_sign_in_page(signed_in):
    signed_in.goto("/pools/")
    signed_in.context.clear_cookies()
    expect(signed_in).to_have_url(re.compile(r"/login/\?next=/pools/$"))


def test_notice_closes_by_itself_unless_somebody_reads_it(signed_in):
    signed_in.goto("/alerts/kinds/")
    signed_in.get_by_role("button", name="Save").click()
    notice = signed_in.locator(".toast")
    notice.hover()
    signed_in.wait_for_timeout(9000)
    expect(notice).to_be_visible()
    signed_in.mouse.move(0, 0)
    expect(notice).to_have_count(0)
