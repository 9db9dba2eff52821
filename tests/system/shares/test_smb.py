"""SMB from outside: who gets in, what they may do, and that nobody is disturbed by a change
of somebody else's share."""

from __future__ import annotations

import hashlib
import os

import pytest

from deploy.image.machine import wait_for
from tests.system import moving, sharing
from tests.system.sharing import CONFIG, Client

STATE = "share"

MIB = 2**20
OUTSIDE = ("/etc/samba/smb.conf", "/etc/exports", "/etc/netatalk/afp.conf", "/etc/smartd.conf", "/etc/nsswitch.conf")


@pytest.fixture(scope="module")
def box(visitor, appliance):
    """A pool with folders, two people, and one share that stays: Samba runs."""
    sharing.make_pool(appliance, "tank", "photos", "films", "drop", "backups")
    for name in ("anna", "ben"):
        sharing.make_person(visitor, name)
    said = sharing.set_share(
        visitor, appliance, "tank/photos", name="photos", write="anna", read="ben", previous="on", mac="on"
    )
    assert said.startswith("Done."), said
    return appliance


def sums(appliance) -> str:
    """Checksums of the system's own files that are there."""
    return str(appliance.shell(f"for f in {' '.join(OUTSIDE)}; do [ ! -e $f ] || sha256sum $f; done"))


def test_256_mib_go_out_and_come_back_whole_and_a_wrong_person_is_refused(visitor, box, tmp_path):
    anna, ben = Client(box, tmp_path, "anna"), Client(box, tmp_path, "ben")
    sent, received = tmp_path / "sent", tmp_path / "received"
    sent.write_bytes(os.urandom(256 * MIB))
    anna.done("photos", f"put {sent} holiday.raw")
    anna.done("photos", f"get holiday.raw {received}")
    assert hashlib.sha256(received.read_bytes()).digest() == hashlib.sha256(sent.read_bytes()).digest()
    assert box.run("sha256sum", "/tank/photos/holiday.raw").split()[0] == hashlib.sha256(sent.read_bytes()).hexdigest()

    # Who may only read reads, and changes nothing.
    ben.done("photos", f"get holiday.raw {received}")
    status, said = ben.tried("photos", f"put {sent} mine.raw")
    assert "NT_STATUS_ACCESS_DENIED" in said, (status, said)
    assert "holiday.raw" in ben.done("photos", "ls")
    assert "mine.raw" not in ben.done("photos", "ls")

    # A wrong password, a name that nobody has, and no name at all.
    for client in (
        Client(box, tmp_path, "anna", "not her password"),
        Client(box, tmp_path, "carla"),
        Client(box, tmp_path),
    ):
        status, said = client.tried("photos", "ls")
        assert status != 0, said


def test_a_guest_comes_in_only_where_guests_are_allowed(visitor, box, tmp_path):
    assert sharing.set_share(visitor, box, "tank/films", name="films", write="anna", guest="read").startswith("Done.")
    assert sharing.set_share(visitor, box, "tank/drop", name="drop", guest="write").startswith("Done.")
    note, guest = tmp_path / "note", Client(box, tmp_path)
    note.write_text("hello\n")
    guest.done("films", "ls")
    assert "NT_STATUS_ACCESS_DENIED" in guest.tried("films", f"put {note} note")[1]
    guest.done("drop", f"put {note} note")
    assert box.run("cat", "/tank/drop/note") == "hello\n"
    assert guest.tried("photos", "ls")[0] != 0
    Client(box, tmp_path, "anna").done("films", f"put {note} note")


def test_the_oldest_kind_of_smb_is_refused(box, tmp_path):
    anna = Client(box, tmp_path, "anna")
    anna.who += ["--option=client min protocol=NT1", "-m", "NT1"]
    assert anna.tried("photos", "ls")[0] != 0


def test_a_transfer_goes_on_while_other_shares_come_change_and_go(visitor, box, tmp_path):
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(256 * MIB))
    anna = Client(box, tmp_path, "anna")
    wait_for("nobody to have films open", lambda: "films" not in sharing.sessions(box), timeout=60)
    at_work = anna.begun("photos", "; ".join(f"put {sent} again{number}.raw" for number in range(6)))
    try:
        wait_for("the transfer to be under way", lambda: "photos" in sharing.sessions(box), timeout=60)
        assert sharing.set_share(visitor, box, "tank/films", name="cinema", write="ben").startswith("Done.")
        sharing.click(visitor, box, "tank/drop", "off")
        sharing.wait_for_switch(visitor, box, "tank/drop", "off")
        assert at_work.poll() is None, "the transfer ended before the shares were changed: send more"
        said, _nothing = at_work.communicate(timeout=900)
        assert at_work.returncode == 0, said
    finally:
        at_work.kill()
    digest = hashlib.sha256(sent.read_bytes()).hexdigest()
    for number in range(6):
        assert box.run("sha256sum", f"/tank/photos/again{number}.raw").split()[0] == digest
    box.shell("rm /tank/photos/again*.raw")


def test_a_share_that_is_switched_off_is_really_closed(visitor, box, tmp_path):
    assert sharing.set_share(visitor, box, "tank/films", name="cinema", write="ben").startswith("Done.")
    sharing.wait_for_switch(visitor, box, "tank/films", "on")
    ben = Client(box, tmp_path, "ben")
    held = ben.held("cinema")
    try:
        wait_for("ben to have it open", lambda: "cinema" in sharing.sessions(box), timeout=60)
        sharing.click(visitor, box, "tank/films", "off")
        sharing.wait_for_switch(visitor, box, "tank/films", "off")
        wait_for("nobody to have it open", lambda: "cinema" not in sharing.sessions(box), timeout=60)
    finally:
        held.kill()
        held.wait()
    assert "NT_STATUS_BAD_NETWORK_NAME" in ben.tried("cinema", "ls")[1]


def test_a_file_deleted_after_a_snapshot_is_fetched_back_by_its_gmt_path(box, tmp_path):
    anna = Client(box, tmp_path, "anna")
    note, back = tmp_path / "note", tmp_path / "back"
    note.write_text("as it was\n")
    anna.done("photos", f"put {note} note.txt")
    box.run("zfs", "snapshot", "tank/photos@larder-hourly-2026.11.21-12.00.00")
    anna.done("photos", "del note.txt")
    assert "NT_STATUS_OBJECT_NAME_NOT_FOUND" in anna.tried("photos", f"get note.txt {back}")[1]
    anna.done("photos", f"get @GMT-2026.11.21-12.00.00/note.txt {back}")
    assert back.read_text() == "as it was\n"


def test_time_machine_has_a_limit_that_samba_tells_and_the_folder_keeps(visitor, box, tmp_path):
    said = sharing.set_share(visitor, box, "tank/backups", name="backups", write="anna", time_machine="1", mac="on")
    assert said.startswith("Done."), said
    assert moving.prop(box, "refquota", "tank/backups") == "954M"
    assert "fruit:time machine max size = 953M" in box.run("testparm", "-s")
    box.shell(
        "zfs set compression=off tank/backups; dd if=/dev/zero of=/tank/backups/before bs=1M count=800 status=none"
    )
    large = tmp_path / "large"
    large.write_bytes(os.urandom(100 * MIB))
    anna = Client(box, tmp_path, "anna")
    anna.done("backups", f"put {large} one")
    _status, said = anna.tried("backups", f"put {large} two")
    assert "NT_STATUS_DISK_FULL" in said or "NT_STATUS_QUOTA_EXCEEDED" in said, said
    sharing.wait_for_switch(visitor, box, "tank/backups", "on")
    sharing.click(visitor, box, "tank/backups", "off")
    sharing.wait_for_switch(visitor, box, "tank/backups", "off")
    assert moving.prop(box, "refquota", "tank/backups") == "none"


def test_a_hidden_share_is_not_listed_and_is_on(visitor, box, tmp_path):
    assert sharing.set_share(visitor, box, "tank/films", name="secret", write="anna", hidden="on").startswith("Done.")
    sharing.wait_for_switch(visitor, box, "tank/films", "on")
    login = f"username = anna\npassword = {sharing.PASSWORD}\n"
    for who, given in ((("-N",), None), (("-A", "/dev/stdin"), login)):
        listed = box.run("smbclient", "-t", "120", "-g", *who, "-L", "localhost", given=given)
        assert "Disk|photos|" in listed
        assert "secret" not in listed
        # What Debian's smb.conf shares without being asked: to anna her home directory, to a guest that of nobody.
        for unasked in ("Home Directories", "Disk|homes|", "Disk|anna|", "Disk|nobody|", "print$"):
            assert unasked not in listed
    Client(box, tmp_path, "anna").done("secret", "ls")


def test_an_unmounted_folder_is_refused_and_not_served_empty(box, tmp_path):
    anna = Client(box, tmp_path, "anna")
    anna.done("secret", "ls")
    box.run("zfs", "unmount", "tank/films")
    assert anna.tried("secret", "ls")[0] != 0
    box.run("zfs", "mount", "tank/films")
    anna.done("secret", "ls")


def test_a_hand_edit_stops_larder_and_survives(visitor, box):
    before = box.run("cat", CONFIG)
    edited = before + "   # a remark of the owner's\n   max connections = 3\n"
    box.put(CONFIG, edited)
    shared = moving.prop(box, "larder:share", "tank/photos")
    said = sharing.set_share(visitor, box, "tank/photos", name="pictures", write="anna")
    assert "changed by hand" in said, said
    assert box.run("cat", CONFIG) == edited
    assert moving.prop(box, "larder:share", "tank/photos") == shared
    box.put(CONFIG, before)
    assert sharing.set_share(visitor, box, "tank/photos", name="photos", write="anna", previous="on").startswith(
        "Done."
    )


def test_fifty_of_fifty_switches_are_on_for_a_client_when_they_say_so(visitor, box, tmp_path):
    """A hundred changes; the system's own files are as they were."""
    anna, before = Client(box, tmp_path, "anna"), sums(box)
    page = f"/folders/{sharing.key_of(box, 'tank/drop')}/"
    token = visitor.get(page).hidden()["csrfmiddlewaretoken"]

    def turn(to: str) -> None:
        visitor.send(f"{page}switch/smb/{to}/", {"csrfmiddlewaretoken": token, "from": "folder"})
        wait_for(f"the switch to be {to}", lambda: sharing.switch_of(visitor, page) == to, timeout=90)

    for number in range(50):
        turn("on")
        status, said = anna.tried("drop", "ls")
        assert status == 0, (number, said)
        turn("off")
    assert sums(box) == before
