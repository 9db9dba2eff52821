"""A disk that comes and goes: connected when a copy is due, it is imported, copied to, and released again."""

from __future__ import annotations

import re

from deploy.image.machine import wait_for
from tests.system.backups.test_pool_to_pool import FORM, guids, key_of_pool
from tests.system.sharing import key_of
from tests.visitor import create_pool, disk_paths


def test_disk_is_fetched_when_a_copy_is_due_and_safe_to_unplug_afterwards(appliance, visitor):
    tank, usb = disk_paths(appliance, 1, 3)
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", tank)
    create_pool(appliance, "-o", "ashift=12", "-m", "/usb", "usb", usb)
    appliance.shell("zfs create tank/photos; head -c 2000000 /dev/urandom > /tank/photos/one; sync")
    visitor.wait_until("/backups/", "tank/photos", timeout=90)
    photos = key_of(appliance, "tank/photos")
    visitor.wait_until(f"/backups/of/{photos}/new/", "usb (", timeout=90)
    pool = key_of_pool(appliance, "usb")
    review = visitor.post(f"/backups/of/{photos}/new/", pool=pool, name="photos", removable="on", **FORM)
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/", "tank/photos", "good", timeout=180)
    found = re.search(rf"/backups/of/{photos}/[0-9a-f]{{8}}/", page.text)
    assert found
    task = found[0]
    # The first comparison has been made; somebody exports the pool, and the disk leaves.
    visitor.wait_until(task, "100 % of the data", "Back up now", timeout=180)
    appliance.run("zpool", "export", "usb")
    visitor.wait_until(task, "Safe to unplug", timeout=120)
    appliance.pull(3)
    visitor.wait_until(task, "is not connected", "the copy begins by itself", timeout=120)
    # A day later it is connected again.
    appliance.shell("echo more > /tank/photos/two; sync; date -s '+26 hours'")
    before = guids(appliance, "tank/photos")
    appliance.put_back(3)
    wait_for("a copy to be made", lambda: guids(appliance, "tank/photos") != before, timeout=300, every=2)
    visitor.wait_until(task, "Safe to unplug", timeout=300)
    assert "usb" not in appliance.run("zpool", "list", "-H", "-o", "name").split()
    appliance.run("zpool", "import", "-N", "-d", "/dev/disk/by-id", "usb")
    assert guids(appliance, "usb/backups/photos")[-1] == guids(appliance, "tank/photos")[-1]
