"""The one form that shares a folder: its job makes users, folder, shares and schedule, and clients reach them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from urllib.parse import urlencode

from deploy.image.machine import wait_for
from tests.system import sharing
from tests.system.protocols import NETWORKS

STATE = "pool"
ANSWERS = {
    "answered": "1",
    "filled": "1",
    "pool": "tank",
    "name": "family",
    "rows": "1",
    "new-0": "dora",
    "new-0-may": "change",
    "smb": "on",
    "nfs": "on",
    "hosts": " ".join(NETWORKS),
    "snapshots": "on",
}
FORM = f"/shares/new/?{urlencode(ANSWERS)}"


def test_one_form_makes_a_share_that_clients_write_and_read(appliance, visitor, tmp_path: Path):
    sharing.make_pool(appliance, "tank")
    visitor.wait_until("/folders/", "tank", timeout=90)
    review = visitor.get(FORM)
    typed = {"secret-dora": sharing.PASSWORD, "again-dora": sharing.PASSWORD}
    said = visitor.ended(visitor.confirm(review, **typed), timeout=300)
    assert said.startswith("Done."), said

    sent = tmp_path / "sent"
    sent.write_text("written over SMB")
    credentials = tmp_path / "dora"
    credentials.write_text(f"username = dora\npassword = {sharing.PASSWORD}\n")
    argv = ["smbclient", "-p", str(appliance.ports["smb"]), "-A", str(credentials), "-t", "120", "//127.0.0.1/family"]
    done = subprocess.run([*argv, "-c", f"put {sent} note.txt"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr

    address = f"nfs://127.0.0.1/tank/family/note.txt?version=4&nfsport={appliance.ports['nfs']}&uid=1000&gid=1000"

    def read() -> str:
        return subprocess.run(["nfs-cat", address], capture_output=True, text=True, timeout=300).stdout

    # The server lets nobody open a file in its first moments: it waits for clients of before.
    assert wait_for("the file over NFS", read, timeout=240) == "written over SMB"
    assert "user:dora:rwx" in appliance.run("getfacl", "-p", "/tank/family")
    policy = appliance.run("zfs", "get", "-H", "-o", "value", "larder:policy", "tank/family")
    assert json.loads(policy)["hourly"] == 24
    assert sharing.PASSWORD not in appliance.shell("cat /var/lib/larder-agent/journal/* /run/larder/secrets/* || true")


def test_the_same_form_a_second_time_is_refused_at_the_name(appliance, visitor):
    visitor.wait_until("/folders/", "tank/family", timeout=90)
    visitor.wait_until("/users/", "dora", timeout=90)
    answer = visitor.get(FORM.replace("new-0=dora", "new-0="))
    assert answer.status == 400
    assert 'id="id_name_error"' in answer.text
    assert "tank/family" in answer.words
