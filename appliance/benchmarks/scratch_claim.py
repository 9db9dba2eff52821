"""The agent's memory of what it made for measuring, written before it is made: what may be cleared away after a crash.

One file a case, root's own. A name in it is of random digits that nobody else uses, so whatever bears it is Larder's.
"""

from __future__ import annotations

import re

import msgspec

from appliance.errors import Failed, Reason, Refused
from appliance.system import atomic_file, paths

PREFIX = "larder-sweep-"


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be cleared away. ``disks`` held nothing when they were taken; ``pool`` is the pool in which the scratch dataset is."""

    token: str
    disks: tuple[str, ...] = ()
    pool: str = ""
    protocol: str = ""  # through which it is reached
    units: tuple[str, ...] = ()  # what was started for it and is to be stopped: the NFS server

    @property
    def name(self) -> str:
        return scratch_name(self.token)

    @property
    def dataset(self) -> str:
        """Empty for a scratch pool."""
        return f"{self.pool}/{self.name}" if self.pool else ""


def checked_token(text: str) -> str:
    """Twelve hexadecimal digits. Raises Refused."""
    if not re.fullmatch(r"[0-9a-f]{12}", text):
        raise Refused(Reason("case-token-invalid", "That is not the token of a benchmark case.", field="token"))
    return text


def is_scratch_name(pool: str) -> bool:
    """Whether a pool of this name is one that is only there to be measured."""
    return re.fullmatch(rf"{PREFIX}[0-9a-f]{{12}}", pool) is not None


def scratch_name(token: str) -> str:
    """Of the scratch pool or dataset."""
    return f"{PREFIX}{token}"


def write_claim(claim: Claim) -> None:
    """Keep it, on disk before this returns."""
    folder = paths.AGENT_STATE / "sweeps"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic_file.write(folder / claim.token, msgspec.json.encode(claim))


def read_claim(of: str) -> Claim | None:
    """None where nothing is claimed under that token. Raises Failed where the file is not what was written."""
    try:
        return msgspec.json.decode((paths.AGENT_STATE / "sweeps" / checked_token(of)).read_bytes(), type=Claim)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Failed("The note of what was made for measuring cannot be read", str(error)) from error


def forget_claim(of: str) -> None:
    (paths.AGENT_STATE / "sweeps" / checked_token(of)).unlink(missing_ok=True)
