"""Whether this box looks for partitions on a volume (``volmode``, zfsprops(7)): not where another
computer has written them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from appliance.formatting import names_text
from appliance.message import Message

UNREAD = "volmode=dev"  # a device without partitions: neither the kernel nor udev reads what lies on it
MOST_NAMED = 5


def mode_argv(volume: str) -> list[str]:
    """The command that gives a volume its device and has this box look for no partitions on it."""
    return ["zfs", "set", UNREAD, volume]


def unread_text(volumes: Sequence[str]) -> str:
    """A warning for a review: that the partitions on these are not shown here, and the command that changes it."""
    return Message(
        "This box does not show the partitions on {volumes} (volmode=dev), since another computer may have "
        "written them. To use them on this box, run as root: {command}",
        volumes=names_text(volumes, MOST_NAMED),
        command=shlex.join(["zfs", "inherit", "volmode", volumes[0] if len(volumes) == 1 else "VOLUME"]),
    )
