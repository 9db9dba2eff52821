"""Backups between two boxes over a network of their own: to a paired Larder, and to a
computer that has only ssh and ZFS.

The loopback tests (``test_pairing.py``, ``test_over_ssh.py``) look at each rule; these show that nothing of it needs
one box to be both sides, and what a cable that is pulled, or a box that loses its power, leaves on the other side.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.image import states
from deploy.image.machine import Machine, free_port, wait_for
from tests import warm
from tests.system.backups import test_over_ssh as ssh
from tests.system.backups import test_pairing as pairing
from tests.system.backups.test_pool_to_pool import guids, make_photos, newest, run_now, start_now, sums
from tests.system.sharing import key_of
from tests.visitor import Visitor, create_pool, disk_paths

TREE = ("photos", "photos/trip 2019", "photos/secret")
OPEN = TREE[:2]  # of which the files can be read without a key
NETWORK, THERE = "192.168.77", "192.168.77.2"
WIRE = "wire"  # what QEMU calls both ends


def plug(machine: Machine, number: int, end: str) -> None:
    """Give a machine a second network port, with the address of this number."""
    mac = f"52:54:00:77:00:{number:02x}"
    said = machine.monitor(f"netdev_add socket,id={WIRE},{end}")
    assert not said.strip(), said
    said = machine.monitor(f"device_add e1000e,netdev={WIRE},id=second,mac={mac},romfile=")
    assert not said.strip(), said

    def port() -> str:
        return next(
            (one["ifname"] for one in json.loads(machine.run("ip", "-j", "link")) if one.get("address") == mac), ""
        )

    wait_for("the port", port, timeout=60)
    machine.run("udevadm", "settle")
    name = port()
    machine.shell(f"ip addr add {NETWORK}.{number}/24 dev {name}; ip link set {name} up")


def answers(appliance: Machine) -> bool:
    """Whether the other box can be reached from this one."""
    return "ssh-ed25519" in appliance.run("ssh-keyscan", "-T", "5", "-t", "ed25519", THERE, check=False)


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The key of the folder that is backed up."""
    return make_photos(appliance, visitor, 1_000_000)


@pytest.fixture(scope="module")
def cellar(appliance: Machine, layer: Path) -> Iterator[Machine]:
    """The other box, with a pool for copies, at the other end of a cable."""
    with states.borrow_machine(f"cellar-{os.getpid()}", layer, warm.saved_state(layer, warm.USUAL)) as found:
        # Restored from the same memory as the first, so it is given what an installation makes anew.
        found.shell("rm /etc/ssh/ssh_host_*; ssh-keygen -q -A; systemctl restart ssh; hostnamectl set-hostname cellar")
        create_pool(found, "-o", "ashift=12", "-m", "/safe", "safe", *disk_paths(found, 1))
        at = f"127.0.0.1:{free_port()}"
        plug(found, 2, f"listen={at}")
        plug(appliance, 1, f"connect={at}")
        wait_for("the other box to answer", lambda: answers(appliance), timeout=60)
        yield found


@pytest.fixture(scope="module")
def its_visitor(cellar: Machine) -> Visitor:
    found = Visitor.of_new(cellar)
    found.wait_until("/pools/", "safe", timeout=120)
    return found


@pytest.fixture(scope="module")
def paired(visitor: Visitor, photos: str, its_visitor: Visitor) -> tuple[str, str]:
    """The address of the backup to the paired box, and on that box the page of the pairing."""
    receiver = pairing.receive(its_visitor)
    said = pairing.pair(visitor, pairing.show_code(its_visitor, receiver), THERE)
    assert said.startswith("Done."), said
    page = visitor.wait_until("/backups/computers/", THERE, "ready", timeout=90)
    remote = re.search(r"/backups/computers/[0-9a-f]{8}/", page.text)
    assert remote
    return ssh.add_task(visitor, photos, remote[0], THERE), receiver


def assert_equal(appliance: Machine, cellar: Machine, root: str) -> None:
    """The newest of each folder is there, equal file by file where it can be read."""
    for name in TREE:
        copy = f"{root}/{name.replace(' ', '_')}"
        assert guids(appliance, f"tank/{name}")[-1:] == guids(cellar, copy)[-1:] != []
        if name in OPEN:
            assert sums(appliance, newest(appliance, f"tank/{name}")) == sums(cellar, newest(cellar, copy))


def arriving(cellar: Machine) -> bool:
    """Whether what is being received takes space already: of less, ZFS keeps nothing to go on with."""
    return int(cellar.run("zfs", "get", "-H", "-p", "-o", "value", "usedbychildren", pairing.COPY)) > 20_000_000


def half_received(cellar: Machine) -> bool:
    return cellar.run("zfs", "get", "-H", "-o", "value", "receive_resume_token", pairing.COPY).strip() != "-"


def test_every_folder_arrives_on_the_other_box(appliance, cellar, its_visitor, paired):
    assert_equal(appliance, cellar, pairing.ROOT)
    assert "safe/" not in cellar.run("zfs", "mount")
    its_visitor.wait_until(paired[1], "paired", pairing.COPY, without=("not paired yet",), timeout=90)


def test_cable_that_is_pulled_ends_the_run_and_a_later_one_goes_on(appliance, visitor, cellar, paired):
    task, _receiver = paired
    before = guids(cellar, pairing.COPY)
    appliance.shell("head -c 250000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: arriving(cellar), timeout=180, every=0.2)
    appliance.monitor(f"set_link {WIRE} off")
    said = visitor.ended(job, timeout=600)
    assert not said.startswith("Done."), said
    assert guids(cellar, pairing.COPY) == before
    appliance.monitor(f"set_link {WIRE} on")
    wait_for("the other side to have let go", lambda: not pairing.receiving(cellar), timeout=600, every=2)
    assert half_received(cellar)
    _job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert not half_received(cellar)
    assert_equal(appliance, cellar, pairing.ROOT)


def test_other_box_whose_power_was_cut_gets_the_rest_once_it_is_back(appliance, visitor, cellar, its_visitor, paired):
    task, receiver = paired
    before = guids(cellar, pairing.COPY)
    appliance.shell("head -c 250000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: arriving(cellar), timeout=180, every=0.2)
    cellar.cut_power()
    said = visitor.ended(job, timeout=600)
    assert not said.startswith("Done."), said
    cellar.power_on()
    cellar.set_clock()
    plug_again(appliance, cellar)
    its_visitor.sign_in()
    assert guids(cellar, pairing.COPY) == before
    _job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert_equal(appliance, cellar, pairing.ROOT)
    assert "safe/" not in cellar.run("zfs", "mount")
    its_visitor.wait_until(receiver, "Last connected", timeout=120)


def plug_again(appliance: Machine, cellar: Machine) -> None:
    """What was plugged in by hand is gone with the power of one end."""
    appliance.monitor("device_del second")
    wait_for("the port to be gone", lambda: f"{NETWORK}.1/" not in appliance.run("ip", "-o", "addr"), timeout=60)
    appliance.monitor(f"netdev_del {WIRE}")
    at = f"127.0.0.1:{free_port()}"
    plug(cellar, 2, f"listen={at}")

    def plugged() -> bool:
        try:
            plug(appliance, 1, f"connect={at}")
        except AssertionError:  # QEMU keeps the name of a device for a moment after the system has let go of it
            return False
        return True

    wait_for("the cable", plugged, timeout=60)
    wait_for("the other box to answer", lambda: answers(appliance), timeout=60)


def test_computer_with_ssh_and_zfs_alone_gets_a_folder(appliance, visitor, cellar, photos):
    """Set up by the commands that the page shows, on a box that has never heard of the first."""
    appliance.run("zfs", "create", "tank/letters")
    appliance.shell("echo dear > /tank/letters/one; sync")
    visitor.wait_until("/folders/", "tank/letters", timeout=90)
    letters = key_of(appliance, "tank/letters")
    remote = ssh.add_computer(visitor, cellar, THERE, 22, "/etc/ssh/ssh_host_ed25519_key.pub")
    task = ssh.add_task(visitor, letters, remote, THERE, "letters")
    for number in range(2):
        appliance.shell(f"echo more > /tank/letters/more{number}; sync; zpool sync tank")
        _job, said = run_now(visitor, task)
        assert said.startswith("Done."), said
        copy = f"{ssh.ROOT}/letters"
        assert guids(appliance, "tank/letters")[-1:] == guids(cellar, copy)[-1:] != []
        assert sums(appliance, newest(appliance, "tank/letters")) == sums(cellar, newest(cellar, copy))
    assert "safe/" not in cellar.run("zfs", "mount")
