"""Time Machine: announced with the record that Macs look for, over SMB and then over both, and
never larger than its limit."""

from __future__ import annotations

import os

import pytest

from deploy.image.machine import wait_for
from tests.system import moving, protocols, sharing
from tests.system.sharing import Client

STATE = "pool"


MIB = 2**20
LIMIT = 10**9


@pytest.fixture(scope="module")
def box(visitor, appliance):
    sharing.make_pool(appliance, "tank", "backups", "photos")
    sharing.make_person(visitor, "anna")
    for name, more in (("backups", {"time_machine": "1"}), ("photos", {})):
        said = sharing.set_share(visitor, appliance, f"tank/{name}", name=name, write="anna", mac="on", **more)
        assert said.startswith("Done."), said
    return appliance


def records(box) -> list[str]:
    """The text records of _adisk as a browser of the network sees them, each once."""
    said = box.run(
        "avahi-browse", "--parsable", "--resolve", "--terminate", "--no-db-lookup", "_adisk._tcp", check=False
    )
    lines = [line.split(";", 9)[9] for line in said.splitlines() if line.startswith("=")]
    return sorted({text.strip('"') for line in lines for text in line.split('" "')})


def test_the_one_share_for_backups_is_announced_over_smb(box):
    found = wait_for("the record", lambda: [one for one in records(box) if one.startswith("dk")], timeout=120)
    assert len(found) == 1
    assert found[0].startswith("dk0=adVN=backups,adVF=0x82,adVU=")
    assert "sys=waMa=0,adVF=0x100" in records(box)


def test_it_refuses_to_grow_beyond_its_limit_and_what_was_there_stays_whole(box, tmp_path):
    assert f"fruit:time machine max size = {LIMIT // MIB}M" in box.run("testparm", "-s")
    quota = int(box.run("zfs", "get", "-Hp", "-o", "value", "refquota", "tank/backups"))
    assert quota == LIMIT
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(os.urandom(500 * MIB))
    second.write_bytes(os.urandom(600 * MIB))
    anna = Client(box, tmp_path, "anna")
    anna.done("backups", f"put {first} one")
    _status, said = anna.tried("backups", f"put {second} two")
    assert "NT_STATUS_DISK_FULL" in said or "NT_STATUS_QUOTA_EXCEEDED" in said, said
    box.run("zpool", "sync", "tank")
    assert int(box.run("zfs", "get", "-Hp", "-o", "value", "referenced", "tank/backups")) <= quota + 4 * MIB
    assert box.run("sha256sum", "/tank/backups/one").split()[0] == protocols.digest(first.read_bytes())
    # Not even by hand on the box: the limit is the file system's.
    assert "Disk quota exceeded" in box.shell(
        "dd if=/dev/urandom of=/tank/backups/more bs=1M count=700 2>&1 || true", timeout=400
    )
    anna.done("photos", f"put {first} elsewhere")
    assert moving.prop(box, "refquota", "tank/photos") == "none"


def test_over_both_protocols_it_is_one_record_that_says_both(visitor, box):
    part = {"name": "backups", "write": ["anna"], "time_machine": LIMIT}
    protocols.share(box, visitor, "tank/backups", smb=part, afp=part)
    wait_for(
        "the record of both",
        lambda: any(one.startswith("dk0=adVN=backups,adVF=0xa3,") for one in records(box)),
        timeout=120,
    )
    assert not any(one.startswith("dk1=") for one in records(box))
