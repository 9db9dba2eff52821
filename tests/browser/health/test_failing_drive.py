"""From the link in a mail to healthy: a failing disk is looked at, taken out of use, and the alert clears by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser import steps
from tests.system import alerting
from tests.system.mailbox import mailbox, text_of
from tests.visitor import Visitor, disk_paths

from deploy.image.machine import wait_for  # isort: skip

NVME, LONG = "LARDER-NVME-1", 240_000


# Open: not run in an appliance yet.
@pytest.mark.soak
def test_the_mail_leads_from_failing_to_healthy(page, appliance):
    steps.set_up(page, appliance)
    visitor = Visitor(appliance)
    visitor.sign_in()
    appliance.insert("nvme5", 10**10, serial=NVME, kind="nvme")
    visitor.wait_until("/disks/", NVME, timeout=180)
    nvme = appliance.shell(f"ls /dev/disk/by-id/nvme-*{NVME} | head -1").strip()
    appliance.insert("small6", 10**10, serial="LARDER-SMALL-6")
    other = appliance.shell("ls /dev/disk/by-id/scsi-*LARDER-SMALL-6 | head -1", check=False).strip() or disk_paths(appliance, 1)[0]  # fmt: skip
    appliance.run("zpool", "create", "-f", "tank", "mirror", nvme, other)
    with mailbox() as post:
        alerting.tell(visitor, post)
        appliance.nvme_warning("nvme5", 4)
        alerting.raised(appliance, visitor, "disk.failing", disks=True)
        wait_for("the mail", lambda: post.about("is failing"), timeout=180)
        text = text_of(post.about("is failing")[0])
        link = re.search(r"https://\S+/alerts/\d+/", text)
        assert link, text
        page.goto(link[0])
        expect(page.get_by_role("heading", name="From failing to healthy")).to_be_visible()
        expect(page.get_by_text("tank survives 1 more failed disk")).to_be_visible()
        page.get_by_role("link", name="Take it offline to test it").click()
        page.get_by_role("button", name="Take a disk of tank offline").click()
        steps.finished(page)
        page.goto(link[0])
        page.get_by_role("link", name="Erase every sector").click()
        expect(page.get_by_role("heading").first).to_be_visible()
        appliance.nvme_warning("nvme5", 0)
        alerting.over(appliance, visitor, "disk.failing", disks=True)
        page.goto(link[0])
        expect(page.get_by_text("It is over")).to_be_visible(timeout=LONG)
        wait_for("the mail that it is over", lambda: len(post.about("Over: ")) == 1, timeout=180)
