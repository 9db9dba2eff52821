"""Samba's own tests against a share made by Larder and a plain one on the same pool: none is
lost by Larder's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.system import sharing

STATE = "pool"


SUITES = (
    "vfs.fruit",
    "vfs.fruit_timemachine",
    "smb2.read",
    "smb2.rw",
    "smb2.create",
    "smb2.dir",
    "smb2.streams",
    "smb2.durable-open",
)
CREDENTIALS = "/root/torture.credentials"
SMB_CONF = "/etc/samba/smb.conf"
# Larder's file sets modules for all shares, so a plain one has to say that it has none. It comes before the line that
# takes Larder's file in.
PLAIN = "[plain]\n   path = /tank/plain\n   read only = no\n   valid users = anna\n   vfs objects =\n"
RESULT = re.compile(r"^(success|failure|error|skip): (.*?)(?: \[)?$", re.MULTILINE)
SECONDS = 1800


@pytest.fixture(scope="module")
def both(appliance, visitor) -> Iterator[object]:
    """tank/larder as Larder shares it with what its form proposes for Macs and snapshots,
    tank/plain as smb.conf does."""
    sharing.make_pool(appliance, "tank", "larder", "plain")
    sharing.make_person(visitor, "anna")
    appliance.run("chown", "anna:larder-people", "/tank/plain")
    said = sharing.set_share(visitor, appliance, "tank/larder", name="larder", write="anna", previous="on", mac="on")
    assert said.startswith("Done."), said
    before = appliance.run("cat", SMB_CONF)
    appliance.put(SMB_CONF, before.replace("[global]", f"{PLAIN}\n[global]", 1), mode="0644")
    appliance.put(CREDENTIALS, f"username = anna\npassword = {sharing.PASSWORD}\n", mode="0600")
    appliance.run("smbcontrol", "all", "reload-config")
    try:
        yield appliance
    finally:
        appliance.put(SMB_CONF, before, mode="0644")
        appliance.run("rm", "-f", CREDENTIALS)
        appliance.run("smbcontrol", "all", "reload-config")


def results(appliance, share: str, suite: str) -> dict[str, str]:
    """The name of each test of a suite to how it ended. smbtorture itself fails where one test does."""
    said = appliance.shell(
        f"timeout {SECONDS} smbtorture -A {CREDENTIALS} //127.0.0.1/{share} {suite} 2>&1 || true", timeout=SECONDS + 60
    )
    found = {name: how for how, name in RESULT.findall(said)}
    assert found, said[-2000:]
    return found


@pytest.mark.parametrize("suite", SUITES)
def test_what_passes_on_a_plain_share_passes_on_larders(both, suite):
    plain, larder = (results(both, share, suite) for share in ("plain", "larder"))
    worse = {
        name: larder.get(name, "not run")
        for name, how in plain.items()
        if how == "success" and larder.get(name) != "success"
    }
    assert not worse


def test_streams_pass_on_larders_share_more_often_than_on_a_plain_one(both):
    """Which shows that the two are not by chance the same share."""
    plain, larder = (results(both, share, "smb2.streams") for share in ("plain", "larder"))
    assert list(larder.values()).count("success") > list(plain.values()).count("success")
