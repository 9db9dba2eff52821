"""Another computer that receives backups over ssh, as the agent has noted it. Nothing in here is secret."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from typing import Any

import msgspec

from appliance.message import message_of


class Remote(msgspec.Struct, frozen=True):
    """``root``: the dataset there that copies lie in. ``public_key``: of the key that this box signs in with.

    ``host_key`` is the one that the owner has confirmed, ``offered_key`` another one that the computer showed
    last; each as ``ssh-ed25519 AAAA…``, empty where there is none. ``problem`` is what the last test said;
    empty: it was ready. ``restore_problem``: why copies cannot be brought back from there, as it said last;
    backups go there all the same.
    """

    id: str
    host: str
    port: int
    user: str
    root: str
    public_key: str = ""
    host_key: str = ""
    offered_key: str = ""
    tested: datetime | None = None
    problem: str = ""
    zfs: str = ""  # its version there
    free: int = 0  # bytes in ``root`` at that time
    restore_problem: str = ""
    pace: int = 0  # bytes a second of the last long stream to or from it, 0 where none was measured
    paired: bool = False  # another Larder, set up by a code: nothing has to be done there by hand
    said: dict[str, Any] = msgspec.field(default_factory=dict)  # what the problems were made from: ``messages_by_text``

    @property
    def problem_text(self) -> str:
        """``problem`` as the message that it was."""
        return message_of(self.problem, self.said)

    @property
    def restore_problem_text(self) -> str:
        return message_of(self.restore_problem, self.said)

    @property
    def name(self) -> str:
        """The computer as pages call it."""
        return self.host

    @property
    def place(self) -> str:
        """``attic.lan, tank/backups``"""
        return f"{self.host}, {self.root}"

    @property
    def has_other_key(self) -> bool:
        """Whether it showed another host key than the one that was confirmed: it may be somebody else's computer."""
        return bool(self.host_key and self.offered_key)

    @property
    def is_ready(self) -> bool:
        return bool(self.host_key and not self.offered_key and self.tested and not self.problem)


def fingerprint_of(key: str) -> str:
    """The SHA256 of a host key as ``ssh-keygen -l`` shows it; empty where the text is no key."""
    words = key.split()
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (IndexError, ValueError):
        return ""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
