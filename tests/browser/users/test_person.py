"""A user in the browser: create, give access to a folder, set a password, disable, remove."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser import steps

FIRST, SECOND = "anna's own words", "other words of anna"


def test_a_person_is_made_let_in_given_a_new_password_disabled_and_removed(page, appliance):
    steps.set_up(page, appliance)
    steps.create_pool(page, name="tank", bays=[1, 2], layout="Mirror")
    steps.create_folder(page, parent="tank", name="photos")
    steps.create_account(page, name="anna", password=FIRST)

    page.goto("/folders/")
    page.get_by_role("link", name="tank/photos", exact=True).click()
    page.get_by_role("link", name="Change access to its files").click()
    page.get_by_label("All users: no access").check()
    page.get_by_label("anna: read and change", exact=True).check()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("anna can read and change it")).to_be_visible()
    page.get_by_role("button", name="Set access to the files of tank/photos").click()
    steps.finished(page)
    assert "user:anna:rwx" in appliance.run("getfacl", "-p", "/tank/photos")

    page.goto("/users/anna/account/")
    expect(page.get_by_role("link", name="tank/photos")).to_be_visible()
    page.get_by_role("link", name="Set a new password").click()
    page.get_by_label("New password", exact=True).fill(SECOND)
    page.get_by_label("New password once more").fill(SECOND)
    steps.confirm(page, "Set a new password for anna")
    steps.finished(page)

    page.goto("/users/anna/account/")
    page.get_by_role("button", name="Disable anna").click()
    steps.finished(page)
    page.goto("/users/anna/account/")
    expect(page.get_by_role("button", name="Enable anna")).to_be_visible()

    page.get_by_role("button", name="Remove anna").click()
    expect(page).to_have_title(re.compile("Remove anna"))
    expect(page.get_by_text("belong to nobody")).to_be_visible()
    page.get_by_role("button", name="Remove anna").click()
    steps.finished(page)
    page.goto("/users/")
    expect(page.get_by_role("heading", name="No users yet")).to_be_visible()
    assert appliance.run("getent", "passwd", "anna", check=False) == ""
