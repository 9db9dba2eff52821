"""The power goes in the middle of a backup, of a tested restore and of a restore: the box says what became of it,
nothing that nobody owns is left, and the next one goes on. After any start, no copy is mounted or shared."""

from __future__ import annotations

import re

from deploy.image.machine import Machine, wait_for
from tests.system.backups.test_pool_to_pool import (  # noqa: F401  # fixtures
    COPY,
    growing,
    guids,
    newest,
    photos,
    run_now,
    start_now,
    sums,
    task,
    token,
)
from tests.system.backups.test_proof import drill, everything
from tests.system.backups.test_restore_folder import assert_equal, begin, large, tree  # noqa: F401  # a fixture
from tests.system.crash import no_lock_left, struck, watching
from tests.visitor import Visitor


def cut(appliance: Machine, visitor: Visitor) -> None:
    """The power goes, and comes back."""
    appliance.cut_power()
    appliance.power_on()
    appliance.set_clock()
    visitor.sign_in()


def interrupted(appliance: Machine, visitor: Visitor, job: str) -> str:
    """What is said of a job whose power was cut; no lock of it is left."""
    said = visitor.ended(job)
    assert said.startswith("Interrupted."), said
    no_lock_left(appliance)
    return said


def held(appliance: Machine, folder: str) -> list[str]:
    """The snapshots of a folder that something holds."""
    said = appliance.run("zfs", "list", "-H", "-t", "snapshot", "-o", "name,userrefs", "-r", folder)
    return [name for name, holds in (line.split("\t") for line in said.splitlines()) if holds != "0"]


def test_backup_whose_power_was_cut_goes_on(appliance, visitor, task):  # noqa: F811
    appliance.shell("head -c 250000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    before = guids(appliance, COPY)
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: growing(appliance), timeout=120, every=0.1)
    cut(appliance, visitor)
    interrupted(appliance, visitor, job)
    assert guids(appliance, COPY) == before  # the newest whole copy is what it was
    arrived = token(appliance)
    again, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    if arrived != "-":
        assert f"zfs send -t {arrived}" in visitor.get(f"/jobs/{again}/").words
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))
    assert (held(appliance, "tank/photos"), held(appliance, COPY), token(appliance)) == ([], [], "-")


def test_tested_restore_whose_power_was_cut_leaves_nothing_for_long(appliance, visitor, task):  # noqa: F811
    assert run_now(visitor, task)[1].startswith("Done.")
    before = everything(appliance)
    job = drill(visitor, task)
    wait_for(
        "a part to be restored", lambda: re.search(r"/drill-\w+/\d", "\n".join(tree(appliance))), timeout=120, every=0.1
    )
    cut(appliance, visitor)
    said = interrupted(appliance, visitor, job)
    assert "Larder removes it" in said or "Nothing of it is left" in said, said
    wait_for("what it left to be removed", lambda: everything(appliance) == before, timeout=300)
    said = visitor.ended(drill(visitor, task))
    assert said.startswith("Done."), said
    assert everything(appliance) == before


def test_restore_whose_power_was_cut_goes_on_and_is_whole(appliance, visitor, task, large):  # noqa: F811
    assert run_now(visitor, task)[1].startswith("Done.")
    job, stage = begin(appliance, visitor, "cut")
    cut(appliance, visitor)
    said = interrupted(appliance, visitor, job)
    assert stage in said, said
    assert "tank/cut" not in tree(appliance)
    again = visitor.confirm(visitor.wait_until(f"/jobs/{job}/again/", "What will happen"))
    said = visitor.ended(again)
    assert said.startswith("Done."), said
    assert_equal(appliance, "tank/cut")
    assert stage not in tree(appliance)


def test_restore_that_is_cut_off_as_it_takes_its_place_is_there_or_not_at_all(appliance, visitor, task, large):  # noqa: F811
    """Its last step is a rename, which is there as a whole or not."""
    with watching(appliance, entry="step begun", step="place", victim="nobody") as watcher:
        job, _stage = begin(appliance, visitor, "placed")
        struck(watcher)
        cut(appliance, visitor)
    said = visitor.ended(job)
    if not said.startswith("Done."):
        assert "tank/placed" not in tree(appliance), said
        said = visitor.ended(visitor.confirm(visitor.wait_until(f"/jobs/{job}/again/", "What will happen")))
    assert said.startswith("Done."), said
    assert_equal(appliance, "tank/placed")
    assert not [name for name in tree(appliance) if "restoring" in name]


def test_copy_of_a_folder_with_harmful_settings_is_out_of_use_after_a_restart(appliance, visitor, task):  # noqa: F811
    """Its original was mounted elsewhere and shared by every way there is, and is gone:
    nothing else takes its place."""
    evil, copy = "tank/photos/evil", f"{COPY}/evil"
    appliance.shell(
        f"zfs create {evil}; echo root::0:0::/:/bin/sh > /{evil}/passwd; chmod 4755 /{evil}/passwd; sync;"
        " zfs set -u mountpoint=/mnt/evil sharenfs=on sharesmb=on "
        f"""'larder:share={{"smb":{{"name":"evil"}}}}' {evil}"""
    )
    visitor.wait_until("/folders/", evil, timeout=90)
    _job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert guids(appliance, copy) == guids(appliance, evil)[-1:] != []
    appliance.run("zfs", "destroy", "-r", evil)
    appliance.reboot()
    visitor.sign_in()
    assert guids(appliance, copy)  # its pool is there again
    for again in range(2):
        assert "backups" not in appliance.run("zfs", "mount")
        mounts = appliance.run("cat", "/proc/mounts")
        assert "safe/backups" not in mounts and "/mnt/evil" not in mounts
        exports = appliance.run("exportfs", "-v")
        assert "backups" not in exports and "evil" not in exports
        assert "evil" not in appliance.shell("testparm -s 2>/dev/null; ls /var/lib/samba/usershares || true")
        assert appliance.run("ls", "-A", "/mnt/evil", check=False) == ""
        if not again:  # the same once more, after everything that ZFS would mount and share is asked for
            appliance.shell("zfs mount -a || true; zfs share -a || true")
    wanted = {
        "mounted": "no",
        "canmount": "off",
        "mountpoint": "none",
        "sharenfs": "off",
        "sharesmb": "off",
        "setuid": "off",
        "larder:share": "-",
    }
    found = appliance.run("zfs", "get", "-H", "-p", "-o", "property,value", ",".join(wanted), copy)
    assert dict(line.split("\t") for line in found.splitlines()) == wanted
    visitor.wait_until(task, "Back up now", timeout=240)
    assert run_now(visitor, task)[1].startswith("Done.")
