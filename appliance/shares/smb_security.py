"""Signing and encryption of SMB for the whole server: a small file beside Samba's, which anybody may read.
Pages show it, and every rendering of Samba's settings takes it in.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from appliance.facts.sharing import SmbPolicy
from appliance.system import atomic_file

FILE = Path("/etc/samba/larder-policy.json")


def read_security() -> SmbPolicy:
    """The choice; the usual one where nobody has chosen, or the file holds none."""
    try:
        return msgspec.json.decode(FILE.read_bytes(), type=SmbPolicy)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return SmbPolicy()


def store_security(policy: SmbPolicy) -> None:
    """Write the choice, durably."""
    atomic_file.write_atomically(FILE, msgspec.json.encode(policy) + b"\n", mode=0o644)
