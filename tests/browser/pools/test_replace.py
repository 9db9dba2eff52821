"""A person pulls a disk out of a raidz2, without a word, and gets back to healthy by what the pages say."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser import steps
from tests.visitor import create_pool, disk_paths

LONG = 240_000
NEW = "LARDER-NEW-7"


def test_a_person_who_pulls_a_disk_gets_back_to_healthy_by_the_page_alone(page, appliance):
    steps.set_up(page, appliance)
    create_pool(appliance, "-o", "ashift=12", "tank", "raidz2", *disk_paths(appliance, 1, 2, 3, 4))
    appliance.shell(
        "dd if=/dev/urandom of=/tank/photo bs=1M count=64 status=none; sha256sum /tank/photo > /root/sum; "
        "zpool sync tank"
    )
    page.goto("/")
    bay = page.get_by_label("The disks of this box").get_by_role("link", name=re.compile(r"^Bay 2\b"))
    expect(bay).to_contain_text("tank", timeout=LONG)
    expect(bay).to_contain_text("healthy")

    appliance.remove(2)
    chassis = page.get_by_label("The disks of this box")
    expect(chassis.get_by_role("link", name=re.compile(r"Bay 2\b"))).to_contain_text("removed", timeout=LONG)
    hand = steps.Hand()
    hand.click(page.get_by_role("link", name="What to do").first)
    expect(page.get_by_role("heading", name="tank", exact=True)).to_be_visible()
    hand.click(page.get_by_role("link", name="Replace it").first)
    hand.click(page.get_by_role("button", name="Replace this disk"))
    expect(page.get_by_text("The right disk is out.")).to_be_visible(timeout=LONG)

    appliance.insert("new7", 2 * 10**12, serial=NEW)
    expect(page.get_by_text(re.compile(NEW)).first).to_be_visible(timeout=LONG)
    hand.click(page.get_by_role("link", name=re.compile("^Use bay ")).last)
    expect(page.locator("pre", has_text="zpool replace")).to_have_count(1)  # folded until it is asked for
    steps.confirm(page, "Replace a disk of tank", hand)
    expect(page.get_by_text("tank is complete again.")).to_be_visible(timeout=LONG)
    hand.click(page.get_by_role("button", name="Close with this report"))
    expect(page.get_by_text("tank is healthy.")).to_be_visible(timeout=LONG)
    assert page.get_by_role("heading", name="What to do").count() == 0
    assert hand.clicks <= 6

    assert "ONLINE" in appliance.run("zpool", "list", "-H", "-o", "health", "tank")
    appliance.run("zpool", "scrub", "-w", "tank")
    appliance.run("sha256sum", "-c", "/root/sum")
