"""Who is connected is shown with what they have open, over SMB and NFS, and is ended by one button."""

from __future__ import annotations

import pytest

from deploy.image.machine import wait_for
from tests.system import protocols, sharing
from tests.system.sharing import Client
from tests.visitor import Answer, Visitor

STATE = "share"

PAGE = "/shares/connected/"


@pytest.fixture(scope="module")
def box(visitor, appliance):
    sharing.make_pool(appliance, "tank", "photos")
    sharing.make_person(visitor, "anna")
    protocols.share(
        appliance,
        visitor,
        "tank/photos",
        smb={"name": "photos", "write": ["anna"]},
        nfs={"hosts": list(protocols.NETWORKS), "root": True},
    )
    return appliance


def button(text: str, protocol: str) -> str:
    """The address behind the button of the one connection over that protocol."""
    found = [part.split('"')[0] for part in text.split('action="')[1:] if part.startswith(f"{PAGE}{protocol}-")]
    assert len(found) == 1, found
    return found[0]


def press(visitor: Visitor, page: Answer, protocol: str) -> Answer:
    return visitor.send(button(page.text, protocol), {"csrfmiddlewaretoken": page.hidden()["csrfmiddlewaretoken"]})


def test_a_client_of_smb_is_shown_with_its_open_file_and_ended(visitor, box, tmp_path):
    note = tmp_path / "note"
    note.write_text("hello\n")
    anna = Client(box, tmp_path, "anna")
    anna.done("photos", f"put {note} holiday.txt")
    held = anna.held("photos", "open holiday.txt")
    try:
        wait_for("the file to be open", lambda: "holiday.txt" in box.run("smbstatus", "--json"), timeout=90)
        page = visitor.wait_until(PAGE, "anna", "over SMB", "photos", "holiday.txt", timeout=120)
        answer = press(visitor, page, "smb")
        said = visitor.ended(sharing.job_in(answer), timeout=180)
        assert said.startswith("Done."), said
        assert "photos" not in sharing.sessions(box)
        visitor.wait_until(PAGE, without=("holiday.txt",), timeout=90)
    finally:
        held.kill()
        held.wait()
    anna.done("photos", "ls")  # it may come back


def test_a_client_of_nfs_is_shown_with_its_open_file_and_ended(visitor, box):
    box.shell("mkdir -p /mnt/nfs && mount -t nfs -o vers=4.2 127.0.0.1:/tank/photos /mnt/nfs", timeout=180)
    try:
        box.shell(
            "echo hello > /mnt/nfs/held.txt; nohup sh -c 'exec 9>>/mnt/nfs/held.txt; sleep 900' > /dev/null "
            "2>&1 & echo $! > /tmp/holder",
            timeout=300,
        )
        page = visitor.wait_until(PAGE, "over NFS", "held.txt", timeout=180)
        number = button(page.text, "nfs").split("nfs-")[1].strip("/").split("/")[0]
        answer = press(visitor, page, "nfs")
        said = visitor.ended(sharing.job_in(answer), timeout=180)
        assert said.startswith("Done."), said
        assert number not in box.shell("ls /proc/fs/nfsd/clients").split()
    finally:
        box.shell("kill $(cat /tmp/holder) || true; umount -f -l /mnt/nfs || true", timeout=180)
