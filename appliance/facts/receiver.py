"""Another Larder whose backups come to this box, as the agent has noted it. Nothing in here is secret."""

from __future__ import annotations

from datetime import datetime

import msgspec

from appliance.facts.kept_copies import Keep

DAYS = 7  # without a sign of the other box, after which its owner wants to know


class Receiver(msgspec.Struct, frozen=True):
    """``root``: the folder that its copies lie in, known by its ``guid``. ``public_key``: what the other box signs in
    with, as ``ssh-ed25519 AAAA…``, and ``sender`` its name for itself; both empty until it was paired.

    ``keep``: how many of its copies stay, None for all. ``days``: how long it may be silent before that is an alert, 0:
    for ever. ``seen``: when it last signed in, as the inventory knows; not part of what the agent notes.

    ``code_until``: until when a code can be typed there; None where none was shown, or it was used or cancelled.
    """

    id: str
    root: str
    guid: int
    made: datetime
    public_key: str = ""
    sender: str = ""
    paired: datetime | None = None
    code_until: datetime | None = None
    keep: Keep | None = None
    days: int = DAYS
    seen: datetime | None = None

    @property
    def name(self) -> str:
        """The other box as pages call it."""
        return self.sender or self.root.rpartition("/")[2]
