"""A pool with three shares and two disks for other computers goes from one box to another that has never seen it:
offered there, and on after one confirmation; what asks for a secret, after a new one."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from deploy.image import states
from deploy.image.machine import GIB
from tests.system import initiators, moving, shapes, sharing
from tests.system.iscsi_disk import opened
from tests.system.sharing import CONFIG, Client
from tests.visitor import Visitor, create_pool

NAMES = ("photos", "films", "music")
DISKS = ("moved1", "moved2")
SECRET, NEW_SECRET = "twelve-signs-1", "another-one-22"
WRITTEN = b"written on the first box".ljust(4096, b".")


@pytest.fixture(scope="module")
def fresh(layer):
    """A second appliance, of the same image and with nothing in it."""
    with states.borrow_machine(f"fresh-{os.getpid()}", layer) as found:
        yield found


def serial(disk: str) -> str:
    return f"LARDER-{disk.upper()}"


@pytest.fixture(scope="module")
def moved(visitor, appliance, fresh):
    """Made, shared and filled on one box by its pages; its disks are then in the other."""
    for disk in DISKS:
        appliance.insert(disk, 4 * GIB, serial=serial(disk))
    paths = [shapes.disk_link(appliance, serial(disk)) for disk in DISKS]
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", "mirror", *paths)
    sharing.make_person(visitor, "anna")
    for name in NAMES:
        appliance.run("zfs", "create", f"tank/{name}")
    for name in NAMES:
        appliance.run("chown", "root:larder-people", f"/tank/{name}")
        appliance.run("chmod", "2770", f"/tank/{name}")
        # A reading in the middle of making it shows it as not mounted yet.
        page = f"/folders/{sharing.key_of(appliance, f'tank/{name}')}/"
        visitor.wait_until(page, f"/tank/{name}", without=("not mounted",), timeout=90)
        said = sharing.set_share(visitor, appliance, f"tank/{name}", name=name, write="anna")
        assert said.startswith("Done."), said
        appliance.put(f"/tank/{name}/here.txt", f"{name}\n")
        appliance.shell(f"chgrp larder-people /tank/{name}/here.txt; chmod 0660 /tank/{name}/here.txt")
    offer_disks(visitor, appliance)
    guid = moving.guid_of(appliance, "tank")
    moving.done(visitor, moving.end_review(visitor, guid, "export"))
    for disk in DISKS:
        appliance.unplug(disk)
        shutil.copy(appliance.folder / f"{disk}.qcow2", fresh.folder / f"{disk}.qcow2")
        fresh.insert(disk, 4 * GIB, serial=serial(disk))
        shapes.disk_link(fresh, serial(disk))
    return guid


def offer_disks(visitor, appliance) -> None:
    """A volume for every computer, with something written on it, and one that asks for a secret."""
    plain = initiators.make_volume(visitor, appliance, "tank/plain")
    assert initiators.share(visitor, plain, name="plain").startswith("Done.")
    with opened(appliance, "plain") as disk:
        disk.write(7, WRITTEN)
        disk.flush()
    guarded = initiators.make_volume(visitor, appliance, "tank/guarded")
    said = initiators.share(visitor, guarded, {"secret": SECRET, "again": SECRET}, name="guarded", user="desk")
    assert said.startswith("Done."), said


@pytest.fixture(scope="module")
def other(fresh) -> Visitor:
    return Visitor.of_new(fresh)


def test_the_other_box_offers_all_three_and_serves_none_until_somebody_agrees(moved, other, fresh, tmp_path):
    moving.look(other, "Import tank")
    assert moving.bring_in(other, moved, name="tank").startswith("Done.")
    for name in NAMES:
        other.wait_until(f"/pools/{moved}/", f"tank/{name} asks to be shared as {name} for anna", timeout=120)
        assert f"[{name}]" not in fresh.run("cat", CONFIG)
    other.wait_until(f"/pools/{moved}/", "tank/plain asks to be shared as plain", timeout=120)
    assert initiators.listed(fresh) == set()
    # anna is nobody here yet: an account of that name is made by hand, with a password of its own.
    sharing.make_person(other, "anna", "another long word")
    anna = Client(fresh, tmp_path, "anna", "another long word")
    for name in NAMES:
        assert anna.tried(name, "ls")[0] != 0
    moving.done(other, moving.end_review(other, moved, "accept", "SMB as photos for anna"))
    for name in NAMES:
        assert "here.txt" in anna.done(name, "ls")
    other.wait_until(f"/pools/{moved}/", without=("asks to be shared",), timeout=90)


def test_disk_for_another_computer_is_the_same_on_the_other_box(moved, other, fresh):
    """It is on since the confirmation above: the same name, the same serial number, the same bytes."""
    assert initiators.listed(fresh) == {"plain"}
    url = initiators.disk_url(fresh, "plain")
    assert f"{int(sharing.key_of(fresh, 'tank/plain')):016x}" in initiators.inquiry(url, "-e", "1", "-c", "128")[1]
    with opened(fresh, "plain") as disk:
        assert disk.read(7) == WRITTEN


def test_disk_with_a_secret_is_served_on_the_other_box_once_it_has_a_new_one(moved, other, fresh):
    """A secret does not travel with the disks; the page says so, and asks for another."""
    key = sharing.key_of(fresh, "tank/guarded")
    assert "its secret does not travel with the disks" in other.wait_until(f"/folders/{key}/iscsi/why/", "secret").words
    form = other.get(f"/folders/{key}/iscsi/").text
    assert re.search(r'<input[^>]*name="new_secret"[^>]*checked', form), "the box has none, so a new one is proposed"
    both = {"secret": NEW_SECRET, "again": NEW_SECRET}
    said = initiators.share(other, key, both, name="guarded", user="desk", new_secret="on")
    assert said.startswith("Done."), said
    held = initiators.disk_url(fresh, "guarded", user="desk", secret=NEW_SECRET)
    assert "Vendor:LARDER" in initiators.inquiry(held)[1]
    former = initiators.disk_url(fresh, "guarded", user="desk", secret=SECRET)
    assert "Vendor:" not in initiators.inquiry(former)[1]
