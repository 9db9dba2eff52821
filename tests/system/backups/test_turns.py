"""Two USB disks that take turns: each goes on from the moment that it ends with, although no snapshot of that is left.

One is of an older ZFS and cannot store large blocks. Its copy goes on with plain streams after the pool was upgraded.
"""

from __future__ import annotations

import re
from pathlib import Path

from deploy.image.machine import Machine, wait_for
from tests.system import shapes
from tests.system.backups.test_pool_to_pool import FORM, key_of_pool, newest, run_now, sums
from tests.system.sharing import key_of
from tests.visitor import Visitor, create_pool, disk_paths

DISKS = {"usba": "LARDER-USB-A", "usbb": "LARDER-USB-B"}  # by the names of their pools, their serial numbers
SIZE = 4 * 10**9
OLDER = ("-o", "feature@large_blocks=disabled", "-o", "feature@large_microzap=disabled")


def set_up(appliance: Machine, visitor: Visitor, photos: str, pool: str) -> str:
    """The address of a backup to a pool, whose first copy and comparison have been made."""
    visitor.wait_until(f"/backups/of/{photos}/new/", f"{pool} (", timeout=90)
    before = set(re.findall(rf"/backups/of/{photos}/[0-9a-f]{{8}}/", visitor.get("/backups/").text))
    review = visitor.post(f"/backups/of/{photos}/new/", pool=key_of_pool(appliance, pool), name="photos", **FORM)
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/", pool, timeout=90)
    (task,) = set(re.findall(rf"/backups/of/{photos}/[0-9a-f]{{8}}/", page.text)) - before
    visitor.wait_until(task, "100 % of the data", "Back up now", timeout=240)
    appliance.shell("zfs list -H -t snapshot -o name -d 1 tank/photos | xargs -r -n1 zfs destroy")
    return str(task)


def hours(appliance: Machine, copy: str) -> list[tuple[str, int]]:
    """The guid of each snapshot of a copy and the hour since the epoch in which it was made, the oldest first."""
    said = appliance.run(
        "zfs", "list", "-H", "-p", "-t", "snapshot", "-d", "1", "-o", "guid,creation", "-s", "createtxg", copy
    )
    return [(guid, int(made) // 3600) for guid, made in (line.split("\t") for line in said.splitlines())]


def unplug(appliance: Machine, pool: str) -> None:
    appliance.run("zpool", "export", pool)
    appliance.unplug(pool)


def plug_in(appliance: Machine, pool: str) -> None:
    appliance.insert(pool, SIZE, serial=DISKS[pool], kind="usb")
    disk = shapes.disk_link(appliance, DISKS[pool])
    wait_for(f"{disk} to be here", lambda: "here" in appliance.shell(f"test -e {disk}-part1 && echo here", check=False))
    appliance.run("zpool", "import", "-N", "-d", "/dev/disk/by-id", pool)


def test_disks_in_turn_go_on_from_bookmarks_alone(appliance, visitor):
    (tank,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", tank)
    appliance.shell("zfs create -o recordsize=1M tank/photos; head -c 2000000 /dev/urandom > /tank/photos/one; sync")
    visitor.wait_until("/backups/", "tank/photos", timeout=90)
    photos = key_of(appliance, "tank/photos")
    tasks: dict[str, str] = {}
    for name, serial in DISKS.items():
        appliance.insert(name, SIZE, serial=serial, kind="usb")
        disk = shapes.disk_link(appliance, serial)
        assert Path(disk).name.startswith("usb-")
        create_pool(appliance, "-o", "ashift=12", *(OLDER if name == "usba" else ()), "-m", f"/{name}", name, disk)
        tasks[name] = set_up(appliance, visitor, photos, name)
    unplug(appliance, "usbb")
    connected = "usba"
    for here in (*DISKS, *DISKS):
        if here != connected:
            unplug(appliance, connected)
            visitor.wait_until(tasks[connected], "is not connected", timeout=120)
            plug_in(appliance, here)
            connected = here
            appliance.run("zpool", "upgrade", here)
        copy = f"{here}/backups/photos"
        before = hours(appliance, copy)
        appliance.shell("head -c 1000000 /dev/urandom > /tank/photos/$(date +%s); sync")
        job, said = run_now(visitor, tasks[here])
        assert said.startswith("Done."), said
        flags = "" if here == "usba" else "-L -e -c "
        assert (
            f"zfs send {flags}-i 'tank/photos#larder-backup-"
            in visitor.get(f"/jobs/{job}/").words.partition("Output")[2]
        )
        *others, new = hours(appliance, copy)
        # Of each hour the newest copy stays, and nothing else goes.
        assert dict(others) == {guid: hour for guid, hour in before if hour != new[1]}
        assert new[0] not in dict(before)
        assert sums(appliance, newest(appliance, copy)) == sums(appliance, newest(appliance, "tank/photos"))
        # Somebody destroys every snapshot of the folder.
        appliance.shell("zfs list -H -t snapshot -o name -d 1 tank/photos | xargs -r -n1 zfs destroy")
