"""From a pool to a written file with few clicks: the one form that shares a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.system import sharing
from tests.visitor import Visitor

STATE = "pool"
PASSWORD = "dora's own words"
MOST_CLICKS = 5


def open_overview(page: Page, appliance) -> None:
    """Signed in, on the overview of a box with a pool."""
    visitor = Visitor(appliance)
    visitor.set_up()
    sharing.make_pool(appliance, "tank")
    visitor.wait_until("/folders/", "tank", timeout=90)
    steps.sign_in(page)
    page.goto("/")


def test_a_file_is_written_after_at_most_five_clicks(page, appliance, tmp_path: Path):
    open_overview(page, appliance)
    click = steps.Clicks()
    click(page.get_by_role("link", name="Share a folder").first)
    page.get_by_label("Name of the folder").fill("films")
    page.get_by_label("Name of new user 1").fill("dora")
    click(page.get_by_role("button", name="Continue"))
    page.get_by_label("Password for dora", exact=True).fill(PASSWORD)
    page.get_by_label("Password for dora once more").fill(PASSWORD)
    click(page.get_by_role("button", name="Share the folder tank/films"))
    steps.finished(page)
    expect(page.get_by_role("heading", name="Open tank/films on this computer")).to_be_visible()
    assert click.count <= MOST_CLICKS

    sent, credentials = tmp_path / "sent", tmp_path / "dora"
    sent.write_text("written over SMB")
    credentials.write_text(f"username = dora\npassword = {PASSWORD}\n")
    argv = ["smbclient", "-p", str(appliance.ports["smb"]), "-A", str(credentials), "-t", "120", "//127.0.0.1/films"]
    done = subprocess.run([*argv, "-c", f"put {sent} note.txt"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert appliance.run("cat", "/tank/films/note.txt") == "written over SMB"
