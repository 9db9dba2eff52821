"""Folders that are shared, people who may use them, and clients from outside, for the system tests of shares."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from deploy.image.machine import Machine
from tests.visitor import Visitor, disk_paths

MIB = 2**20
PEOPLE = "larder-people"
AGREED = "/var/lib/larder-agent/agreed-shares"
# The emulator's network, from which the outside comes, and the box itself.
NETWORKS = ("10.0.2.0/24", "127.0.0.0/8")


def pool(appliance: Machine, *folders: str) -> None:
    """A pool called tank on bay 1, with folders that the people of the box may use."""
    appliance.run("zpool", "create", "-f", "tank", disk_paths(appliance, 1)[0])
    for folder in folders:
        appliance.run("zfs", "create", f"tank/{folder}")
        appliance.run("chgrp", PEOPLE, f"/tank/{folder}")
        appliance.run("chmod", "2770", f"/tank/{folder}")


def guid_of(appliance: Machine, dataset: str) -> str:
    return appliance.run("zfs", "get", "-H", "-o", "value", "guid", dataset).strip()


def account(visitor: Visitor, name: str, password: str) -> None:
    """Make an account by the pages."""
    review = visitor.post("/people/new/", name=name)
    said = visitor.ended(visitor.confirm(review, secret=password, again=password))
    assert said.startswith("Done"), said


def job_of(url: str, words: str) -> str:
    found = re.search(r"/jobs/([0-9a-f-]{36})/", url)
    assert found, words
    return found[1]


def serve(visitor: Visitor, guid: str, protocol: str) -> str:
    """Have a folder served by the button of "Why can't I see it?"; what the job said at its end."""
    answer = visitor.post(f"/shares/{guid}/{protocol}/mend/serve/")
    return visitor.ended(job_of(answer.url, answer.words), timeout=300)


def share(appliance: Machine, visitor: Visitor, dataset: str, **protocols: Mapping[str, object]) -> str:
    """Let a dataset carry this setting, agree to it, and have each protocol serve it; its guid."""
    guid = guid_of(appliance, dataset)
    appliance.run("zfs", "set", f"larder:share={json.dumps(protocols)}", dataset)
    known = appliance.shell(f"cat {AGREED} 2>/dev/null || true").split()
    appliance.put(AGREED, "".join(f"{one}\n" for one in {*known, guid}), mode="0600")
    for protocol, setting in protocols.items():
        mark = str(setting.get("name", ":/"))
        visitor.wait_until(f"/shares/{guid}/{protocol}/ways/", "Choose your kind of computer", mark, timeout=120)
        said = serve(visitor, guid, protocol)
        assert said.startswith("Done"), said
    return guid


def content(size: int) -> bytes:
    """Bytes that do not compress, the same ones nowhere else."""
    return os.urandom(size)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def smb(appliance: Machine, share_name: str, command: str, credentials: Path) -> subprocess.CompletedProcess[str]:
    """A command of smbclient from outside."""
    argv = ["smbclient", "-p", str(appliance.ports["smb"]), "-A", str(credentials), "-t", "120"]
    return subprocess.run(
        [*argv, f"//127.0.0.1/{share_name}", "-c", command], capture_output=True, text=True, timeout=300, check=False
    )
