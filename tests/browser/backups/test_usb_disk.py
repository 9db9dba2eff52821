"""A USB disk is plugged in, a backup goes to it, and the page says when it can be unplugged; a day later again."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from deploy.image.machine import Machine, wait_for
from tests.browser import steps
from tests.system import shapes
from tests.visitor import create_pool, disk_paths

SERIAL, SIZE = "LARDER-USB-1", 4 * 10**9
LONG = 300_000


def is_here(appliance: Machine) -> bool:
    return "drawer" in appliance.run("zpool", "list", "-H", "-o", "name").split()


def test_usb_disk_is_backed_up_to_when_it_is_plugged_in_and_is_safe_to_unplug(page, appliance):
    steps.set_up(page, appliance)
    (tank,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", tank)
    appliance.shell("zfs create tank/photos; echo dear anna > /tank/photos/letter.txt; sync")
    appliance.insert("drawer", SIZE, serial=SERIAL, kind="usb")
    create_pool(appliance, "-o", "ashift=12", "-m", "/drawer", "drawer", shapes.disk_link(appliance, SERIAL))

    page.goto("/pools/")
    expect(page.get_by_role("link", name="drawer", exact=True)).to_be_visible()
    page.goto("/backups/")
    page.get_by_role("link", name="Back up tank/photos", exact=True).click()
    page.get_by_label("drawer", exact=False).check()
    page.get_by_label("comes and goes", exact=False).check()
    page.get_by_role("button", name="Next").click()
    steps.confirm(page, re.compile("backup", re.IGNORECASE))
    steps.finished(page)
    page.goto("/backups/")
    row = page.get_by_role("row").filter(has_text="tank/photos")
    expect(row).to_contain_text("good", timeout=LONG)

    # Its owner takes it out of use and puts it into a drawer.
    page.goto("/pools/")
    page.get_by_role("link", name="drawer", exact=True).click()
    page.get_by_text("Checkpoint, export and destroy").click()
    page.get_by_role("link", name="Export").click()
    steps.confirm(page, re.compile("Export"))
    steps.finished(page)
    page.goto("/backups/")
    page.get_by_role("link", name="tank/photos", exact=True).click()
    expect(page.get_by_text("Safe to unplug.")).to_be_visible(timeout=LONG)
    appliance.unplug("drawer")
    expect(page.get_by_text("The pool drawer is not connected")).to_be_visible(timeout=LONG)

    appliance.shell("echo more > /tank/photos/second.txt; sync; date -s '+26 hours'")
    appliance.insert("drawer", SIZE, serial=SERIAL, kind="usb")
    wait_for("the disk to be taken into use", lambda: is_here(appliance), timeout=300)
    wait_for("the disk to be released", lambda: not is_here(appliance), timeout=300)
    steps.sign_in(page)
    page.goto("/backups/")
    page.get_by_role("link", name="tank/photos", exact=True).click()
    expect(page.get_by_text("Safe to unplug.")).to_be_visible(timeout=LONG)
    appliance.unplug("drawer")

    # What the disk has is looked at by hand, so Larder must not take it into use.
    appliance.run("systemctl", "stop", "larder-worker.service")
    appliance.insert("drawer", SIZE, serial=SERIAL, kind="usb")
    shapes.import_pool(appliance, "drawer", "-N", "-o", "readonly=on")
    newest = appliance.shell("zfs list -H -o name -t snapshot -s creation drawer/backups/photos | tail -1").strip()
    appliance.shell(f"mkdir -p /mnt/look; mount -t zfs {newest} /mnt/look")
    assert appliance.run("cat", "/mnt/look/second.txt") == "more\n"
