"""Volumes as disks for computers outside the appliance, as libiscsi's tools see them."""

from __future__ import annotations

import os

import pytest

from appliance.shares.iscsi.part import PREFIX
from deploy.image.machine import wait_for
from tests.system import canary, initiators, iscsi_disk, moving, sharing
from tests.system.initiators import INITIATOR, capacity, disk_url, inquiry, listed, share, stop
from tests.visitor import Visitor

STATE = "pool"
# With a name of another length than this the kernel pads its answer with bytes that libiscsi
# 1.19 takes for a part of it.
BOX = "larder"
SECRET, BACK, CANARY = "twelve-signs-1", "another-one-22", "zq7canaryzq7"
MIB = 2**20
ADDRESS = "10.0.2.15"  # that the box gets from the network of its tests


@pytest.fixture(scope="module")
def visitor(appliance):
    sharing.make_pool(appliance, "tank")
    return Visitor.of_new(appliance)


def test_volume_shared_from_its_page_is_seen_outside_until_it_is_stopped(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/disk1")
    assert initiators.left_in_kernel(appliance) == []
    said = share(visitor, key, name="disk1")
    assert said.startswith("Done."), said
    assert "disk1" in listed(appliance)
    url = disk_url(appliance, "disk1")
    assert "Vendor:LARDER" in inquiry(url)[1]
    # The serial number is the volume's own, wherever its pool goes.
    assert f"{int(key):016x}" in inquiry(url, "-e", "1", "-c", "128")[1]
    assert f"Total size:{64 * MIB}" in capacity(url)
    assert "LBPME:1" in capacity(url), "the other computer may give back what it no longer uses"
    assert moving.prop(appliance, "volmode", "tank/disk1") == "dev"
    page = visitor.wait_until(f"/folders/{key}/", f"{PREFIX}disk1", "no computer", timeout=90)
    assert "off: no secret is asked for" in page.words
    assert "No problem found on this box" in visitor.get(f"/folders/{key}/iscsi/why/").words

    assert stop(visitor, key).startswith("Done.")
    assert listed(appliance) == set()
    assert initiators.left_in_kernel(appliance) == []
    assert "The switch is off" in visitor.wait_until(f"/folders/{key}/iscsi/why/", "The switch is off").words


def test_chap_lets_in_who_has_the_secret_and_nobody_else(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/chap")
    both = {"secret": SECRET, "again": SECRET, "secret-back": BACK, "again-back": BACK}
    said = share(visitor, key, both, name="chap", user="desk", back_user=BOX, initiators=INITIATOR)
    assert said.startswith("Done."), said
    kept = f"/var/lib/larder-agent/chap/{key}"
    assert appliance.run("stat", "-c", "%a %U", kept).split() == ["600", "root"]
    right = disk_url(appliance, "chap", user="desk", secret=SECRET, back=(BOX, BACK))
    status, answer = inquiry(right)
    assert status == 0, answer
    assert "Vendor:LARDER" in answer
    refused = {
        "a wrong secret": inquiry(disk_url(appliance, "chap", user="desk", secret=f"{SECRET}x", back=(BOX, BACK))),
        "no secret": inquiry(disk_url(appliance, "chap")),
        "a box that is another": inquiry(disk_url(appliance, "chap", user="desk", secret=SECRET, back=(BOX, SECRET))),
        "a computer that is not named": inquiry(right, initiator=f"{INITIATOR}2"),
    }
    assert {why for why, (_status, text) in refused.items() if "Vendor:" in text} == set()
    assert "chap" not in listed(appliance, f"{INITIATOR}2"), "it is not told to computers that are not named"
    assert stop(visitor, key).startswith("Done.")
    appliance.run("test", "!", "-e", kept)


def test_chap_with_any_computer_asks_for_the_secret_of_the_target(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/any")
    said = share(visitor, key, {"secret": SECRET, "again": SECRET}, name="any", user="desk")
    assert said.startswith("Done."), said
    assert "Vendor:LARDER" in inquiry(disk_url(appliance, "any", user="desk", secret=SECRET))[1]
    assert "Vendor:" not in inquiry(disk_url(appliance, "any", user="desk", secret=f"{SECRET}x"))[1]
    assert "Vendor:" not in inquiry(disk_url(appliance, "any"))[1]
    assert stop(visitor, key).startswith("Done.")


def test_secret_of_chap_is_found_nowhere(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/canary")
    with canary.nowhere(appliance, CANARY, argv="zfs set"):
        said = share(visitor, key, {"secret": CANARY, "again": CANARY}, name="canary", user="desk")
        assert said.startswith("Done."), said
        assert "Vendor:LARDER" in inquiry(disk_url(appliance, "canary", user="desk", secret=CANARY))[1]
        assert stop(visitor, key).startswith("Done.")


def test_disk_says_that_it_has_a_write_cache_as_its_volume_has(visitor, appliance):
    """A volume keeps writes in memory until it is told to flush. A disk that denied it would never be told to."""
    key = initiators.make_volume(visitor, appliance, "tank/cached")
    assert share(visitor, key, name="cached").startswith("Done.")
    device = appliance.run("readlink", "-f", "/dev/zvol/tank/cached").strip().rpartition("/")[2]
    assert appliance.run("cat", f"/sys/class/block/{device}/queue/write_cache").strip() == "write back"
    with iscsi_disk.opened(appliance, "cached") as disk:
        assert disk.has_write_cache()
        disk.write(0, b"x" * disk.size)
        disk.flush()
        assert disk.read(0) == b"x" * disk.size
        # Only what was read after this can say that nobody is connected any more.
        visitor.wait_until(f"/folders/{key}/", f"Connected {INITIATOR}", timeout=120)
    visitor.wait_until(f"/folders/{key}/", "Connected no computer", timeout=120)
    assert stop(visitor, key).startswith("Done.")


def test_sectors_of_4096_bytes_on_a_chosen_address_and_what_is_unmapped_is_free_again(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/sectors")
    assert share(visitor, key, name="sectors", block="4096", addresses=ADDRESS).startswith("Done.")
    portals = appliance.run("ls", f"{initiators.TREE}/iscsi/{PREFIX}sectors/tpgt_1/np").split()
    assert portals == [f"{ADDRESS}:3260"]
    said = capacity(disk_url(appliance, "sectors"))
    assert "LOGICAL BLOCK LENGTH IN BYTES:4096" in said
    assert f"Total size:{64 * MIB}" in said

    def used() -> int:
        appliance.run("zpool", "sync", "tank")
        return int(appliance.run("zfs", "get", "-Hp", "-o", "value", "referenced", "tank/sectors"))

    empty = used()
    with iscsi_disk.opened(appliance, "sectors", size=MIB // 8, sector=4096) as disk:
        for block in range(128):
            disk.write(block, os.urandom(disk.size))
        disk.flush()
        assert used() >= empty + 16 * MIB
        for block in range(128):
            disk.unmap(block)
        disk.flush()
        wait_for("the space to be free again", lambda: used() < empty + MIB, timeout=120)
    visitor.wait_until(f"/folders/{key}/", "Connected no computer", timeout=120)
    assert stop(visitor, key).startswith("Done.")


def test_volume_grows_while_a_computer_uses_it_and_is_not_taken_from_it_unseen(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/grows")
    assert share(visitor, key, name="grows").startswith("Done.")
    quiet = visitor.get(f"/folders/{key}/iscsi/stop/")
    assert INITIATOR not in quiet.words
    with initiators.connected(appliance, "grows") as client:
        assert initiators.capacity_seen(client) == 64 * MIB
        # The review was of a volume that nobody used: what it showed is no longer what would happen.
        answer = visitor.send("/jobs/confirm/", quiet.hidden())
        if "/jobs/confirm/" in answer.url:
            assert "Something changed since you looked" in answer.words
        else:
            assert "changed" in visitor.ended(sharing.job_in(answer))
        assert "grows" in listed(appliance)
        visitor.wait_until(f"/folders/{key}/", INITIATOR, timeout=120)

        page = visitor.get(f"/folders/{key}/grow/")
        review = visitor.send(f"/folders/{key}/grow/", {**page.hidden(), "size": "128 MiB"})
        assert visitor.ended(visitor.confirm(review)).startswith("Done.")
        assert f"Total size:{128 * MIB}" in capacity(disk_url(appliance, "grows"))
        assert initiators.capacity_seen(client) == 128 * MIB, (
            "the computer that has it open sees it when it looks again"
        )
        assert client.poll() is None, "the computer that uses it stays connected"

        loud = visitor.get(f"/folders/{key}/iscsi/stop/")
        assert "sees its disk fail" in loud.words
        assert INITIATOR in loud.words
        assert visitor.ended(visitor.confirm(loud)).startswith("Done.")
    assert initiators.left_of(appliance, "grows", key) == []


def test_after_a_restart_it_is_served_again_and_a_locked_volume_is_not(visitor, appliance):
    plain = initiators.make_volume(visitor, appliance, "tank/plain")
    appliance.put("/run/passphrase", "four words for vault\n", mode="0600")
    crypt = ("-o", "encryption=on", "-o", "keyformat=passphrase", "-o", "keylocation=file:///run/passphrase")
    locked = initiators.make_volume(visitor, appliance, "tank/locked", "64M", *crypt)
    appliance.run("zfs", "set", "keylocation=prompt", "tank/locked")
    for key, name in ((plain, "plain"), (locked, "locked")):
        assert share(visitor, key, name=name).startswith("Done.")
    assert listed(appliance) >= {"plain", "locked"}

    appliance.reboot()
    wait_for("the plain volume to be served", lambda: "plain" in listed(appliance), timeout=120)
    assert "locked" not in listed(appliance)
    visitor.sign_in()
    visitor.wait_until(f"/folders/{locked}/", "not served", "until it is unlocked", timeout=120)
    assert "The volume is locked" in visitor.get(f"/folders/{locked}/iscsi/why/").words
    job = visitor.confirm(visitor.get("/folders/unlock-all/"), secret="four words for vault")
    assert visitor.ended(job).startswith("Done.")
    assert listed(appliance) >= {"plain", "locked"}

    # Locking takes the disk away again.
    visitor.wait_until(f"/folders/{locked}/", f"{PREFIX}locked", timeout=120)
    review = visitor.wait_until(f"/folders/{locked}/key/", "Lock tank/locked", timeout=60)
    review = visitor.get(f"/folders/{locked}/key/lock/")
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    assert "locked" not in listed(appliance)
    assert "plain" in listed(appliance)
    assert stop(visitor, plain).startswith("Done.")


def test_volume_that_is_destroyed_leaves_nothing_in_the_kernel(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/goes")
    assert share(visitor, key, name="goes").startswith("Done.")
    visitor.wait_until(f"/folders/{key}/destroy/?review=1", "the share", timeout=120)
    job = visitor.confirm(visitor.get(f"/folders/{key}/destroy/?review=1"), typed="tank/goes")
    assert visitor.ended(job).startswith("Done.")
    assert initiators.left_of(appliance, "goes", key) == []
    assert "goes" not in listed(appliance)


# Families of libiscsi's conformance tests that a disk of LIO has to pass.
FAMILIES = (
    "Inquiry",
    "Mandatory",
    "ModeSense6",
    "Read10",
    "Read16",
    "ReadCapacity10",
    "ReadCapacity16",
    "TestUnitReady",
    "Unmap",
    "Write10",
    "Write16",
    "WriteSame10",
    "WriteSame16",
    "CompareAndWrite",
    "PrinReadKeys",
    "ProutRegister",
    "ProutReserve",
    "ProutClear",
    "ProutPreempt",
)
# Tests of them that fail, each with the reason why the disk is right all the same.
PASSED_OVER = {
    "CompareAndWrite.Simple": (
        "its last of 256 blocks do not fit into the command's one byte; libiscsi 1.20 ends at 255"
    ),
    "CompareAndWrite.Miscompare": "the same",
    "WriteSame10.InvalidDataOutSize": (
        "what is sent after the block is left over and reported as such, RFC 7143, 11.4.5"
    ),
    "WriteSame16.InvalidDataOutSize": "the same",
    "WriteSame16.UnmapUnaligned": "libiscsi sends no block and does not set NDOB, which SBC-3 calls an error",
}


# What the tests of them pass over because the disk says that it has no such thing, each with
# the reason why that is right.
SKIPPED = {
    "WriteSame10.ZeroBlocks": (
        "LIO says in its page of block limits (WSNZ, SBC-3) that no length means no blocks, not all of them"
    ),
    "WriteSame16.ZeroBlocks": "the same",
}


def test_disk_conforms_to_scsi(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/conforms")
    assert share(visitor, key, name="conforms").startswith("Done.")
    found = {family: initiators.conformance(disk_url(appliance, "conforms"), family) for family in FAMILIES}
    assert min(one.ran for one in found.values()) > 0, found
    failed = {name for one in found.values() for name in one.failed}
    assert failed == set(PASSED_OVER), "".join(one.said for one in found.values())[-20_000:]
    skipped = {name: told for one in found.values() for name, told in one.skipped.items()}
    assert skipped.keys() == SKIPPED.keys(), skipped
    # What is known of who is connected is a little older than the last of those tests.
    visitor.wait_until(f"/folders/{key}/", "Connected no computer", timeout=120)
    assert stop(visitor, key).startswith("Done.")
    assert initiators.left_of(appliance, "conforms", key) == []
