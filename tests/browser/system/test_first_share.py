"""The whole way once: set-up, an encrypted raidz2, a folder, a share, a client, a reboot."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from deploy.image.machine import Machine, wait_for
from tests.browser import steps

STATE = "new"

MIB = 2**20
PASSPHRASE = "four words for tank"
SMB_PASSWORD = "anna's own words"


def smb(appliance: Machine, command: str, credentials: Path) -> str:
    """Run a command of smbclient from outside the appliance, as anna."""
    argv = [
        "smbclient",
        "-p",
        str(appliance.ports["smb"]),
        "-A",
        str(credentials),
        "-t",
        "120",
        "//127.0.0.1/photos",
        "-c",
        command,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_pool_made_in_the_browser_serves_a_file_and_serves_it_again_after_a_reboot(page, appliance, tmp_path):
    steps.set_up(page, appliance)
    steps.create_pool(page, name="tank", bays=[1, 2, 3, 4, 5], layout="raidz2 of 5", passphrase=PASSPHRASE)
    steps.create_folder(page, parent="tank", name="photos")
    steps.create_account(page, name="anna", password=SMB_PASSWORD)
    steps.share_over_smb(page, folder="tank/photos", user="anna")

    credentials, sent, received = tmp_path / "anna", tmp_path / "sent", tmp_path / "received"
    credentials.write_text(f"username = anna\npassword = {SMB_PASSWORD}\n")
    sent.write_bytes(os.urandom(64 * MIB))
    digest = hashlib.sha256(sent.read_bytes()).hexdigest()
    smb(appliance, f"put {sent} holiday.raw", credentials)
    smb(appliance, f"get holiday.raw {received}", credentials)
    assert hashlib.sha256(received.read_bytes()).hexdigest() == digest

    appliance.reboot()
    assert "unavailable" in appliance.run("zfs", "get", "-H", "-o", "value", "keystatus", "tank")
    steps.sign_in(page)
    steps.unlock(page, dataset="tank", passphrase=PASSPHRASE)
    received.unlink()
    wait_for("Samba to serve the share again", lambda: smb(appliance, "ls", credentials), timeout=60)
    smb(appliance, f"get holiday.raw {received}", credentials)
    assert hashlib.sha256(received.read_bytes()).hexdigest() == digest
