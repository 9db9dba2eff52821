"""Claim files: the agent's record of what it makes for a benchmark case, written first, for cleaning up after a crash.

There is one file for each case, owned by root. The names in it contain random digits, so everything with such a name is
Larder's own.
"""

from __future__ import annotations

import re

import msgspec

from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.system import atomic_file, paths

PREFIX = "larder-sweep-"


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What to clean up. ``disks`` were empty when they were taken; ``pool`` holds the scratch dataset."""

    token: str
    disks: tuple[str, ...] = ()
    pool: str = ""
    protocol: str = ""  # share protocol that serves the scratch folder
    units: tuple[str, ...] = ()  # systemd units that were started for the case and have to be stopped (NFS)

    @property
    def name(self) -> str:
        return scratch_name(self.token)

    @property
    def dataset(self) -> str:
        """Name of the scratch dataset; empty for a scratch pool."""
        return f"{self.pool}/{self.name}" if self.pool else ""


def checked_token(text: str) -> str:
    """Return ``text`` if it is a token: twelve hexadecimal digits. Raises Refused."""
    if not re.fullmatch(r"[0-9a-f]{12}", text):
        raise Refused(Reason("case-token-invalid", "That is not the token of a benchmark case.", field="token"))
    return text


def is_scratch_name(pool: str) -> bool:
    """Whether ``pool`` is the name of a scratch pool."""
    return re.fullmatch(rf"{PREFIX}[0-9a-f]{{12}}", pool) is not None


def scratch_name(token: str) -> str:
    """Name of the scratch pool or dataset."""
    return f"{PREFIX}{token}"


def write_claim(claim: Claim) -> None:
    """Store the claim; it is on disk when this returns."""
    folder = paths.AGENT_STATE / "sweeps"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic_file.write_atomically(folder / claim.token, msgspec.json.encode(claim))


def read_claim(of: str) -> Claim | None:
    """The claim with this token, or None. Raises Failed if its file cannot be read."""
    try:
        return msgspec.json.decode((paths.AGENT_STATE / "sweeps" / checked_token(of)).read_bytes(), type=Claim)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Failed(Message("The note of what was made for measuring cannot be read"), str(error)) from error


def forget_claim(of: str) -> None:
    (paths.AGENT_STATE / "sweeps" / checked_token(of)).unlink(missing_ok=True)
