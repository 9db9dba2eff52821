"""A disk is pulled out while an encrypted copy is being received on it. Nothing can end that receiver, and to let
the pool go on would stop the whole kernel (openzfs/zfs#18394): the run says so and ends, the rest of the box
works, and a restart helps."""

from __future__ import annotations

import re

from deploy.image.machine import Machine, wait_for
from tests.system.backups.test_pool_to_pool import FORM, PHRASE, guids, key_of_pool, newest, run_now, start_now, sums
from tests.system.sharing import key_of
from tests.visitor import create_pool, disk_paths

COPY = "usb/backups/photos"


def arrived(appliance: Machine) -> int:
    """Bytes of an increment that is being received; ZFS counts them among the folders below."""
    return int(appliance.run("zfs", "get", "-H", "-p", "-o", "value", "usedbychildren", COPY))


def test_run_ends_and_asks_for_a_restart_after_which_the_next_goes_on(appliance, visitor):
    tank, usb = disk_paths(appliance, 1, 3)
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", tank)
    create_pool(appliance, "-o", "ashift=12", "-m", "/usb", "usb", usb)
    encrypted = "-o encryption=on -o keyformat=passphrase -o keylocation=prompt"
    appliance.shell(
        f"echo '{PHRASE}' | zfs create {encrypted} tank/photos; head -c 2000000 /dev/urandom > /tank/photos/one; sync"
    )
    visitor.wait_until("/backups/", "tank/photos", timeout=90)
    photos = key_of(appliance, "tank/photos")
    visitor.wait_until(f"/backups/of/{photos}/new/", "usb (", timeout=90)
    review = visitor.post(f"/backups/of/{photos}/new/", pool=key_of_pool(appliance, "usb"), name="photos", **FORM)
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/", "tank/photos", "good", timeout=240)
    found = re.search(rf"/backups/of/{photos}/[0-9a-f]{{8}}/", page.text)
    assert found
    task, before = found[0], guids(appliance, COPY)

    appliance.shell("head -c 250000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: arrived(appliance) > 20_000_000, timeout=90, every=0.1)
    appliance.pull(3)
    said = visitor.ended(job)
    assert "The pool that receives has stopped" in said and "restart the box" in said, said
    assert "zfs send" not in appliance.shell("ps -o args= -C zfs")
    # What stands beside it works, and nobody is offered to let the pool go on.
    appliance.run("zfs", "snapshot", "tank/photos@meanwhile")
    # Folders were read since, without a word of those in usb.
    visitor.wait_until(f"/snapshots/of/{photos}/", "meanwhile", timeout=120)
    pool = f"/pools/{key_of_pool(appliance, 'usb')}/"
    page = visitor.wait_until(pool, "Put the disks of usb back, then restart the box", timeout=120)
    assert "/clear/" not in page.text
    appliance.put_back(3)

    # Nothing can end what waits for the pool, and the restart does not wait for it. All else is written before.
    appliance.shell("echo late > /tank/photos/late")
    assert "usb has stopped. The box does not wait for it" in visitor.get("/system/power/restart/").words
    visitor.restart_box()
    appliance.shell(f"echo '{PHRASE}' | zfs load-key tank/photos; zfs mount tank/photos")
    assert appliance.run("cat", "/tank/photos/late") == "late\n"
    said = appliance.run("journalctl", "-b", "-1", "-u", "larder-shutdown@reboot")
    assert "not waited for: usb" in said and "The other pools are written: tank" in said, said
    appliance.shell("zfs unmount tank/photos; zfs unload-key tank/photos")
    visitor.wait_until(task, "Back up now", timeout=240)
    assert guids(appliance, COPY) == before
    assert appliance.run("zfs", "get", "-H", "-o", "value", "receive_resume_token", COPY).startswith("1-")
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert re.search(r"zfs send -w -t 1-[0-9a-f-]+", visitor.get(f"/jobs/{job}/").words)
    for name in ("tank/photos", COPY):
        appliance.shell(f"echo '{PHRASE}' | zfs load-key {name}")
    assert guids(appliance, COPY)[-1] == guids(appliance, "tank/photos")[-1]
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))
