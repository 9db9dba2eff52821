"""From the link in a mail to healthy: looked at, out of use, erased, back in its pool; and
the alert clears by itself."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.system import alerting, shapes
from tests.system.mailbox import mailbox, text_of
from tests.visitor import Visitor, create_pool

from deploy.image.machine import Machine, wait_for  # isort: skip


NVME, OTHER = "LARDER-NVME-1", "LARDER-SMALL-6"
SMALL = 2 * 10**9  # so that writing every sector takes minutes, not hours
LONG = 240_000


def mirror_of_small_disks(appliance: Machine, visitor: Visitor) -> None:
    """A pool of a disk whose warnings can be set while it runs, and one beside it; with a file to look after."""
    appliance.insert("nvme5", SMALL, serial=NVME, kind="nvme")
    appliance.insert("small6", SMALL, serial=OTHER)
    visitor.wait_until("/disks/", NVME, OTHER, timeout=180)
    found = [shapes.by_id(appliance, serial) for serial in (NVME, OTHER)]
    create_pool(appliance, "-f", "-o", "ashift=12", "tank", "mirror", *found)
    appliance.shell(
        "dd if=/dev/urandom of=/tank/photo bs=1M count=32 status=none; sha256sum /tank/photo > /root/sum; "
        "zpool sync tank"
    )
    visitor.wait_until("/pools/", "tank", timeout=180)


def next_step(page: Page, link: str, words: str) -> None:
    """Come back to the alert as by the link in the mail, and wait until it offers that."""
    page.goto(link)
    expect(page.get_by_role("link", name=words)).to_be_visible(timeout=LONG)


def test_the_mail_leads_from_failing_to_healthy(page, appliance):
    steps.set_up(page, appliance)
    visitor = Visitor(appliance)
    visitor.sign_in()
    mirror_of_small_disks(appliance, visitor)
    with mailbox() as post:
        alerting.tell(visitor, post)
        appliance.nvme_warning("nvme5", 4)
        alerting.raised(appliance, visitor, "disk.failing", disks=True)
        wait_for("the mail", lambda: post.about("is failing"), timeout=180)
        text = text_of(post.about("is failing")[0])
        assert "tank" in text
        assert "What to do" in text
        link = re.search(r"https://\S+/alerts/\d+/", text)
        assert link, text
        here = link[0]

        next_step(page, here, "Take it offline to test it")
        expect(page.get_by_role("heading", name="From failing to healthy")).to_be_visible()
        expect(page.get_by_text("tank survives 1 more failed disk")).to_be_visible()
        expect(page.get_by_text("unreliable").first).to_be_visible()
        page.get_by_role("link", name="Take it offline to test it").click()
        page.get_by_role("button", name="Take a disk of tank offline").click()
        steps.finished(page)

        next_step(page, here, "Erase every sector")
        page.get_by_role("link", name="Erase every sector").click()
        expect(page.get_by_text("goes back as if it were new").first).to_be_visible()
        page.get_by_label(re.compile(NVME)).fill(NVME)
        steps.confirm(page, re.compile("^Erase all of"))
        steps.finished(page, timeout=1_200_000)
        page.get_by_text("Output").click()
        expect(page.locator("#log")).to_contain_text("Before: media errors")
        expect(page.locator("#log")).to_contain_text("After: media errors")

        alerting.ask_disks(appliance)
        page.goto(here)
        expect(page.get_by_text("It still counts faults.")).to_be_visible(timeout=LONG)
        expect(page.get_by_role("link", name="Put it back into the pool")).to_have_count(0)
        with page.expect_download() as report:
            page.get_by_role("link", name="A report for the warranty").click()
        assert NVME in report.value.path().read_text()

        appliance.nvme_warning("nvme5", 0)  # as if writing every sector had helped
        alerting.ask_disks(appliance)
        next_step(page, here, "Put it back into the pool")
        page.get_by_role("link", name="Put it back into the pool").click()
        expect(page.get_by_text("goes back into its own place in tank").first).to_be_visible()
        steps.confirm(page, "Replace a disk of tank")
        steps.finished(page)

        page.goto(here)
        expect(page.get_by_text("It is back in tank, which is rebuilt.")).to_be_visible(timeout=LONG)
        alerting.over(appliance, visitor, "disk.failing", disks=True)
        page.goto(here)
        expect(page.get_by_text("It is over", exact=True)).to_be_visible(timeout=LONG)
        wait_for("the mail that it is over", lambda: len(post.about("resolved: Disk")) == 1, timeout=180)
        assert len(post.about("is failing")) == 2, post.subjects()  # its beginning, and once its end
    assert "ONLINE" in appliance.run("zpool", "list", "-H", "-o", "health", "tank")
    appliance.run("zpool", "scrub", "-w", "tank")
    appliance.run("sha256sum", "-c", "/root/sum")
