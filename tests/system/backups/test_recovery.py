"""The box and its pool are lost; with a disk that has the backups, and the recovery phrase,
a new box takes its place."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.recovery import phrase as phrases
from deploy.image import states
from deploy.image.machine import Machine
from tests import warm
from tests.system import moving, persons
from tests.system.backups.test_pool_to_pool import FORM, key_of_pool
from tests.system.backups.test_restore_folder import review
from tests.system.crash import no_lock_left, struck, watching
from tests.system.sharing import PASSWORD, Client, key_of, make_person, set_share
from tests.visitor import PASSWORD as OWN_PASSWORD
from tests.visitor import Visitor, create_pool, disk_paths

# What the agent reads of a record, as root sees it.
READ = "mkdir -p /mnt/record; mount -t zfs -o ro,zfsutil {pool}/.larder-box /mnt/record; {what}; umount /mnt/record"


KEY = "four words for private"


def make_box(appliance: Machine, visitor: Visitor) -> None:
    """A pool with a share for anna, of a group; berta, who is disabled; and a second pool for the copies."""
    tank, safe = disk_paths(appliance, 1, 3)
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", tank)
    create_pool(appliance, "-o", "ashift=12", "-m", "/safe", "safe", safe)
    appliance.run("zfs", "create", "-o", "acltype=posix", "-o", "xattr=sa", "tank/photos")
    appliance.shell("chown root:larder-people /tank/photos; chmod 2770 /tank/photos")
    appliance.shell(
        f"echo '{KEY}' | zfs create -o encryption=on -o keyformat=passphrase -o keylocation=prompt "
        "tank/photos/private; "
        "zfs create tank/photos/private/inner; echo dear > /tank/photos/private/inner/letter.txt"
    )
    at = f"/folders/{key_of(appliance, 'tank/photos/private')}/key/"
    visitor.wait_until(at, "Lock tank/photos/private", timeout=90)
    moving.done(visitor, visitor.get(f"{at}keep/"), secret=KEY)
    make_person(visitor, "anna")
    make_person(visitor, "berta", "berta's own long word")
    said = set_share(visitor, appliance, "tank/photos", name="photos", write="anna")
    assert said.startswith("Done."), said
    appliance.put("/tank/photos/holiday.txt", "sun\n")
    appliance.shell("chown anna:larder-people /tank/photos/holiday.txt; chmod 660 /tank/photos/holiday.txt; sync")
    # Only an entry of its access list lets anna read it.
    appliance.shell(
        "cd /tank/photos; echo moon > listed.txt; chmod 600 listed.txt; setfacl -m u:anna:r listed.txt; sync"
    )


def make_phrase(visitor: Visitor) -> str:
    """A recovery phrase, made and typed back."""
    page = visitor.post("/backups/recovery/new-phrase/", password=OWN_PASSWORD)
    code = re.search(r"<code>(.*?)</code>", page.text, re.DOTALL)
    assert code, page.words
    phrase = html.unescape(re.sub(r"<[^>]*>|\s", "", code[1]))
    assert "not typed back yet" in visitor.get("/backups/recovery/").words
    answer = visitor.post("/backups/recovery/confirm/", phrase=phrase.lower())
    assert "on paper" in answer.words
    return phrase


def back_up(appliance: Machine, visitor: Visitor) -> str:
    """The address of the backup of the folder, whose first copy has been made."""
    photos, safe = key_of(appliance, "tank/photos"), key_of_pool(appliance, "safe")
    visitor.wait_until(f"/backups/of/{photos}/new/", "safe (", timeout=90)
    review = visitor.post(f"/backups/of/{photos}/new/", pool=safe, name="photos", **FORM)
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/", "tank/photos", "good", timeout=240)
    found = re.search(rf"/backups/of/{photos}/[0-9a-f]{{8}}/", page.text)
    assert found
    return found[0]


@pytest.fixture(scope="module")
def phrase(appliance: Machine, visitor: Visitor) -> str:
    """The phrase of a box whose folder has been backed up."""
    appliance.run("hostnamectl", "set-hostname", "attic")
    make_box(appliance, visitor)
    found = make_phrase(visitor)
    back_up(appliance, visitor)
    return found


def test_record_lies_on_both_pools_and_has_no_password_that_can_be_read(appliance, visitor, phrase):
    for pool in ("tank", "safe"):
        text = appliance.shell(READ.format(pool=pool, what="cat /mnt/record/*/record.json"))
        record = json.loads(text)
        assert [one["name"] for one in record["users"]] == ["anna", "berta"] and record["sealed"]
        assert f"is: {record['samba_sid']}" in appliance.run("net", "getlocalsid")
        sealed = appliance.shell(READ.format(pool=pool, what="cat /mnt/record/*/secrets.age"))
        assert sealed.startswith("-----BEGIN AGE ENCRYPTED FILE-----")
        hashed = appliance.run("pdbedit", "-L", "-w").split("\n")[0].split(":")[3]
        assert re.fullmatch(r"[0-9A-F]{32}", hashed) and hashed not in text + sealed
    # It is no folder: nothing lists it, nothing mounts it.
    assert ".larder-box" not in visitor.get("/folders/").words
    assert ".larder-box" not in appliance.run("cat", "/proc/mounts")
    everything = appliance.shell(
        "cat /var/lib/larder/*.sqlite3* /run/larder/inventory/*.sqlite3* | base64 -w0; journalctl -b "
        "--no-pager; ls -R /run/larder"
    )
    assert phrase not in everything and phrase.replace("-", "") not in everything


@pytest.fixture(scope="module")
def lost(appliance: Machine, visitor: Visitor, phrase: str, layer: Path) -> Path:
    """The box has ended for good, in the middle of whatever it did; its two disks lie in this folder."""
    appliance.run("sync")
    appliance.cut_power()
    return appliance.folder


@contextlib.contextmanager
def new_box(layer: Path, disk: Path, name: str) -> Iterator[tuple[Machine, Visitor]]:
    """A fresh box that was given one disk of the lost one."""
    with states.borrow_machine(name, layer, warm.saved_state(layer, warm.USUAL)) as machine:
        # Restored from the same memory as the lost one, so it is given what an installation makes anew.
        machine.put("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
        machine.run("hostnamectl", "set-hostname", "cellar")
        shutil.copy(disk, machine.folder / "old.qcow2")
        machine.insert("old", machine.disks[0].size, serial="OLD1")
        yield machine, Visitor.of_new(machine)


def begin_taking_place(visitor: Visitor, phrase: str) -> str:
    """The job of taking the place of the one box that has left a record."""
    page = visitor.wait_until("/backups/recovery/", "has the record of attic", timeout=120)
    found = re.search(r"/backups/recovery/\d+/[0-9a-f]{16}/", page.text)
    assert found, page.words
    assert "anna, berta" in visitor.get(found[0]).words
    review = visitor.get(f"{found[0]}take-place/")
    assert "Take the place of attic" in review.words, review.words
    return str(visitor.confirm(review, secret=phrase))


def assert_list_means_anna(machine: Machine, client: Client) -> None:
    """The entry of the access list has her number, and lets her read what nobody else may."""
    number = machine.run("id", "-u", "anna").strip()
    assert f"user:{number}:r--" in machine.run("getfacl", "-n", "-p", "/tank/photos/listed.txt")
    client.done("photos", "get listed.txt /dev/null")


def take_place(visitor: Visitor, phrase: str) -> str:
    """What the job said at the end."""
    return visitor.ended(begin_taking_place(visitor, phrase), timeout=300)


def test_new_box_serves_the_pool_of_the_lost_one_with_the_old_passwords(lost, layer, phrase, tmp_path):
    with new_box(layer, lost / "disk1.qcow2", f"new-{os.getpid()}-pool") as (machine, visitor):
        began = time.monotonic()
        moving.look(visitor, "Import tank")
        guid = re.search(r"/pools/import/(\d+)/", visitor.get("/pools/import/").text)
        assert guid
        said = moving.bring_in(visitor, guid[1], name="tank", force="on")
        assert said.startswith("Done."), said
        assert "[photos]" not in machine.run("cat", "/etc/samba/larder.conf")
        said = take_place(visitor, phrases.make_phrase())  # of no box
        assert "does not open the secrets" in said
        assert not machine.run("getent", "passwd", "anna", check=False)
        said = take_place(visitor, phrase)
        assert said.startswith("Done."), said
        client = Client(machine, tmp_path, "anna", PASSWORD)
        assert "holiday.txt" in client.done("photos", "ls")
        client.done("photos", "get holiday.txt /dev/null; put /etc/hostname new.txt")
        assert_list_means_anna(machine, client)
        print(f"served again after {time.monotonic() - began:.0f} s")
        assert (
            machine.run("stat", "-c", "%U", "/tank/photos/holiday.txt", "/tank/photos/new.txt").split() == ["anna"] * 2
        )
        assert Client(machine, tmp_path, "anna", "not hers").tried("photos", "ls")[0] != 0
        assert machine.run("passwd", "--status", "berta").split()[1] == "P"
        assert PASSWORD not in machine.shell(
            "journalctl -b --no-pager; cat /var/lib/larder-agent/journal/* | base64 -w0"
        )
        # The next user gets a number that nobody ever had.
        persons.make(visitor, "carla", "carla's own long word")
        assert machine.run("id", "-u", "carla").strip() == "10002"
        # Backups wait until somebody sets them here; the old box would be refused.
        assert "not confirmed" in visitor.wait_until("/backups/", "tank/photos", timeout=90).words
        assert '"by":"cellar"' in machine.run("zfs", "get", "-H", "-o", "value", "larder:box", "tank")


@pytest.mark.parametrize("step", ["passwords", "mark"])
def test_power_that_goes_while_the_place_is_taken_leaves_a_way_on(lost, layer, phrase, tmp_path, step):
    """The phrase has gone with the power, so it is typed again; what was there by then is not made twice."""
    with new_box(layer, lost / "disk1.qcow2", f"new-{os.getpid()}-cut-{step}") as (machine, visitor):
        moving.look(visitor, "Import tank")
        guid = re.search(r"/pools/import/(\d+)/", visitor.get("/pools/import/").text)
        assert guid
        assert moving.bring_in(visitor, guid[1], name="tank", force="on").startswith("Done.")
        with watching(machine, entry="step begun", step=step, victim="nobody") as watcher:
            job = begin_taking_place(visitor, phrase)
            struck(watcher)
            machine.cut_power()
        machine.power_on()
        machine.set_clock()
        moving.plug_in_again(machine, "tank", {"old": "OLD1"}, machine.disks[0].size)
        visitor.sign_in()
        said = visitor.ended(job)
        assert said.startswith("Interrupted."), said
        no_lock_left(machine)
        assert phrase not in machine.shell("journalctl --no-pager; cat /var/lib/larder-agent/journal/* | base64 -w0")
        said = take_place(visitor, phrase)
        assert said.startswith("Done."), said
        client = Client(machine, tmp_path, "anna", PASSWORD)
        client.done("photos", "get holiday.txt /dev/null; put /etc/hostname new.txt")
        assert machine.shell("getent passwd | grep -c -E '^(anna|berta):'").strip() == "2"
        persons.make(visitor, "carla", "carla's own long word")
        assert machine.run("id", "-u", "carla").strip() == "10002"


def test_new_box_serves_the_folder_out_of_the_copy_alone(lost, layer, phrase, tmp_path):
    """The pool is lost with the box: only the disk with the backups is left."""
    with new_box(layer, lost / "disk3.qcow2", f"new-{os.getpid()}-copy") as (machine, visitor):
        began = time.monotonic()
        moving.look(visitor, "Import safe")
        guid = re.search(r"/pools/import/(\d+)/", visitor.get("/pools/import/").text)
        assert guid
        said = moving.bring_in(visitor, guid[1], name="safe", force="on")
        assert said.startswith("Done."), said
        said = take_place(visitor, phrase)
        assert said.startswith("Done."), said
        create_pool(machine, "-o", "ashift=12", "-m", "/tank", "tank", *disk_paths(machine, 2))
        visitor.wait_until("/folders/", "tank", timeout=90)
        restored = visitor.ended(
            visitor.confirm(review(machine, visitor, "safe/backups/photos", parent="tank", name="photos"))
        )
        assert restored.startswith("Done."), restored
        assert machine.run("stat", "-c", "%U", "/tank/photos/holiday.txt").strip() == "anna"
        # Its own key came with the record, and opens what is restored, also at each start.
        for name in ("private", "private/inner"):
            key = key_of(machine, f"tank/photos/{name}")
            assert machine.run("cat", f"/var/lib/larder-agent/keys/{key}") == KEY
            assert (
                machine.run("zfs", "get", "-H", "-o", "source", "larder:unlock", f"tank/photos/{name}").strip()
                == "local"
            )
        assert machine.run("cat", "/tank/photos/private/inner/letter.txt") == "dear\n"
        address = re.search(r"/backups/recovery/\d+/[0-9a-f]{16}/", visitor.get("/backups/recovery/").text)
        assert address
        page = visitor.wait_until(address[0], "Share tank/photos as before", timeout=90)
        share = re.search(r"/backups/recovery/\d+/[0-9a-f]{16}/share/\d+/\d+/", page.text)
        assert share
        said = visitor.ended(visitor.confirm(visitor.get(share[0])))
        assert said.startswith("Done."), said
        client = Client(machine, tmp_path, "anna", PASSWORD)
        client.done("photos", "get holiday.txt /dev/null; put /etc/hostname new.txt")
        assert_list_means_anna(machine, client)
        print(f"served again after {time.monotonic() - began:.0f} s")
        assert machine.run("cat", "/tank/photos/holiday.txt") == "sun\n"
