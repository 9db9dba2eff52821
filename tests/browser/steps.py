"""What a person does in the browser, in words, for tests to be made of."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from deploy.image.machine import Machine
from tests.system.sharing import Client

NAME, PASSWORD = "admin", "correct horse battery"


class Hand:
    """Clicks and fills fields, and counts both."""

    def __init__(self) -> None:
        self.clicks = self.fields = 0

    def click(self, found: Locator) -> None:
        found.click()
        self.clicks += 1

    def fill(self, field: Locator, text: str) -> None:
        field.fill(text)
        self.fields += 1


def set_up(page: Page, appliance: Machine, hand: Hand | None = None) -> None:
    """The first run, with the code from the console; where it is done already, sign in."""
    code = appliance.run("cat", "/run/larder/inventory/setup-code", check=False).strip()
    if not code:
        sign_in(page)
        return
    hand = hand or Hand()
    page.goto("/")
    hand.fill(page.get_by_label("Set-up code"), code)
    hand.fill(page.get_by_label("Your name for signing in"), NAME)
    hand.fill(page.get_by_label("Password", exact=True), PASSWORD)
    hand.fill(page.get_by_label("The password once more"), PASSWORD)
    hand.click(page.get_by_role("button", name="Set up this box"))
    expect(page).to_have_title(re.compile("Overview"))


def sign_in(page: Page) -> None:
    """Sign in, where the session has not outlived what happened."""
    page.goto("/")
    if "/login/" not in page.url:
        return
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_title(re.compile("Overview"))


def finished(page: Page, *, timeout: float = 300_000) -> None:
    """Wait on a job's page until it says how it ended, and see that it is done."""
    ended = page.locator("main .attention[role=status]").first
    expect(ended).to_be_visible(timeout=timeout)
    expect(ended).to_contain_text("Done.", timeout=1000)


def confirm(page: Page, button: str | re.Pattern[str], hand: Hand | None = None) -> None:
    """Press the button of a review page; with the password, where it asks for one."""
    hand = hand or Hand()
    last = page.get_by_role("button", name=button)
    expect(last).to_be_visible()
    password = page.get_by_label("Your password", exact=True)
    if password.count():
        hand.fill(password, PASSWORD)
    hand.click(last)


def create_pool(page: Page, *, name: str, bays: list[int], layout: str, passphrase: str = "") -> None:
    """The wizard from its first step to the finished job."""
    page.goto("/pools/new/")
    page.get_by_label("Name of the pool").fill(name)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name="Choose the disks myself").click()
    proposed = page.locator("input[name=disks]:checked")
    while proposed.count():
        proposed.first.uncheck()
    for bay in bays:
        page.get_by_role("checkbox", name=re.compile(rf"^Bay {bay}\b")).check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("radio", name=re.compile(layout)).check()
    page.get_by_role("button", name="Continue").click()
    step = page.locator("li[aria-current=step]")
    expect(step).not_to_have_text("Disks and layout")
    if step.text_content() != "Options":  # disks are left over: no log, cache or spare
        page.get_by_role("button", name="Continue").click()
    if passphrase:
        page.get_by_label("Encrypt everything in it").check()
    page.get_by_role("button", name="Review").click()
    if passphrase:
        page.get_by_label("Passphrase", exact=True).fill(passphrase)
        page.get_by_label("Passphrase once more").fill(passphrase)
    confirm(page, f"Create the pool {name}")
    finished(page)


def create_account(page: Page, *, name: str, password: str) -> None:
    page.goto("/users/new/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_label("Password once more").fill(password)
    page.get_by_role("button", name=f"Create the user {name}").click()
    finished(page)


def create_folder(page: Page, *, parent: str, name: str) -> None:
    page.goto(f"/folders/new/?parent={parent}")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create the folder").click()
    finished(page)


def share_over_smb(page: Page, *, folder: str, user: str) -> None:
    page.goto("/folders/")
    page.get_by_role("link", name=folder, exact=True).click()
    page.get_by_role("link", name="Choose who may use this share").first.click()
    page.get_by_label(f"{user}: read and change").check()
    page.get_by_role("button", name="Switch the share on").click()
    finished(page)


def share_new_folder(page: Page, hand: Hand, *, folder: str, user: str, password: str) -> None:
    """From the overview of a box with the pool tank: one form for a new folder and a new user, and one review."""
    hand.click(page.get_by_role("link", name="Share a folder").first)
    hand.fill(page.get_by_label("Name of the folder"), folder)
    hand.fill(page.get_by_label("Name of new user 1"), user)
    hand.click(page.get_by_role("button", name="Continue"))
    hand.fill(page.get_by_label(f"Password for {user}", exact=True), password)
    hand.fill(page.get_by_label(f"Password for {user} once more"), password)
    hand.click(page.get_by_role("button", name=f"Share the folder tank/{folder}"))
    finished(page)
    expect(page.get_by_role("heading", name=f"Open tank/{folder} on this computer")).to_be_visible()


def write_file(appliance: Machine, folder: Path, *, share: str, user: str, password: str) -> None:
    """Write a file over SMB from outside, and see that the box has it. ``folder`` is for what the client needs."""
    sent = folder / "sent"
    sent.write_text("written over SMB")
    Client(appliance, folder, user, password).done(share, f"put {sent} note.txt")
    assert appliance.run("cat", f"/tank/{share}/note.txt") == "written over SMB"


def unlock(page: Page, *, dataset: str, passphrase: str) -> None:
    page.goto("/pools/")
    page.get_by_role("link", name=f"Unlock {dataset}").first.click()
    page.get_by_label("Passphrase", exact=True).fill(passphrase)
    page.get_by_role("button", name=f"Unlock {dataset}").click()
    finished(page)
