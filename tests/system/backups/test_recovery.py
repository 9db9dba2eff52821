"""The box and its pool are lost; with a disk that has the backups, and the recovery phrase, a new box takes its place."""

from __future__ import annotations

import html
import json
import re

import pytest

from deploy.image.machine import Machine
from tests.system.backups.test_pool_to_pool import FORM, key_of_pool
from tests.system.sharing import key_of, make_person, set_share
from tests.visitor import PASSWORD as OWN_PASSWORD
from tests.visitor import Visitor, create_pool, disk_paths

# What the agent reads of a record, as root sees it.
READ = "mkdir -p /mnt/record; mount -t zfs -o ro,zfsutil {pool}/.larder-box /mnt/record; {what}; umount /mnt/record"


def make_box(appliance: Machine, visitor: Visitor) -> None:
    """A pool with a share for anna, of a group; berta, who is disabled; and a second pool for the copies."""
    tank, safe = disk_paths(appliance, 1, 3)
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", tank)
    create_pool(appliance, "-o", "ashift=12", "-m", "/safe", "safe", safe)
    appliance.run("zfs", "create", "tank/photos")
    appliance.shell("chown root:larder-people /tank/photos; chmod 2770 /tank/photos")
    make_person(visitor, "anna")
    make_person(visitor, "berta", "berta's own long word")
    said = set_share(visitor, appliance, "tank/photos", name="photos", write="anna")
    assert said.startswith("Done."), said
    appliance.put("/tank/photos/holiday.txt", "sun\n")
    appliance.shell("chown anna:larder-people /tank/photos/holiday.txt; chmod 660 /tank/photos/holiday.txt; sync")


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
    make_box(appliance, visitor)
    found = make_phrase(visitor)
    back_up(appliance, visitor)
    return found


def test_record_lies_on_both_pools_and_has_no_password_that_can_be_read(appliance, visitor, phrase):
    for pool in ("tank", "safe"):
        text = appliance.shell(READ.format(pool=pool, what="cat /mnt/record/*/record.json"))
        record = json.loads(text)
        assert [one["name"] for one in record["users"]] == ["anna", "berta"] and record["sealed"]
        assert record["samba_sid"] == re.search(r"S-1-5-21[-0-9]*", appliance.run("net", "getlocalsid"))[0]
        sealed = appliance.shell(READ.format(pool=pool, what="cat /mnt/record/*/secrets.age"))
        assert sealed.startswith("-----BEGIN AGE ENCRYPTED FILE-----")
        hashed = appliance.run("pdbedit", "-L", "-w").split("\n")[0].split(":")[3]
        assert re.fullmatch(r"[0-9A-F]{32}", hashed) and hashed not in text + sealed
    # It is no folder: nothing lists it, nothing mounts it.
    assert ".larder-box" not in visitor.get("/folders/").words
    assert ".larder-box" not in appliance.run("cat", "/proc/mounts")
    everything = appliance.shell("cat /var/lib/larder/*.sqlite3* /run/larder/inventory/*.sqlite3* | base64 -w0; journalctl -b --no-pager; ls -R /run/larder")  # fmt: skip
    assert phrase not in everything and phrase.replace("-", "") not in everything
