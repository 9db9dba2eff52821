"""NFS and AFP beside what ``sharing.py`` has, for the system tests of shares."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping

from deploy.image.machine import Machine
from tests.system import sharing
from tests.visitor import Visitor

MIB = 2**20
AGREED = "/var/lib/larder-agent/agreed-shares"
# The emulator's network, from which the outside comes, and the box itself.
NETWORKS = ("10.0.2.0/24", "127.0.0.0/8")


def serve(visitor: Visitor, guid: str, protocol: str) -> str:
    """Have a folder served by the button of "Why can't I see it?"; what the job said at its end."""
    answer = visitor.post(f"/shares/{guid}/{protocol}/mend/serve/")
    return visitor.ended(sharing.job_in(answer), timeout=300)


def share(appliance: Machine, visitor: Visitor, dataset: str, **protocols: Mapping[str, object]) -> str:
    """Let a dataset carry this setting, agree to it, and have each protocol serve it; its guid."""
    guid = sharing.key_of(appliance, dataset)
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
