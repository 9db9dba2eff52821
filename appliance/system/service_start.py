"""Whether systemd runs here, and which services run since before a file was written, and so do not know of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from appliance import command
from appliance.errors import Reason, Refused

SYSTEMD = Path("/run/systemd/system")  # sd_booted(3)


def refuse_container() -> None:
    """Raise Refused where systemd does not run."""
    if not SYSTEMD.is_dir():
        raise Refused(
            Reason(
                "box-in-container",
                "Larder runs in a container here, which has the name and the clock of its host. Set them there.",
            )
        )


def services_before(services: Sequence[str], written: Path) -> tuple[str, ...]:
    """Those of these services that run, and were started before that file or folder was last written.
    Raises CommandFailed."""
    argv = ["systemctl", "show", "--timestamp=unix", "--property=Id,ActiveState,ActiveEnterTimestamp", *services]
    blocks = command.run(argv, timeout=30).stdout.split("\n\n")
    moment = int(written.stat().st_mtime) if written.exists() else 0
    found = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in blocks]
    return tuple(
        one["Id"]
        for one in found
        if one.get("ActiveState") == "active" and started_at(one.get("ActiveEnterTimestamp", "")) <= moment
    )


def started_at(text: str) -> int:
    """Seconds since the epoch, from ``@1732370000``; 0 where nothing is told."""
    number = text.removeprefix("@")
    return int(number) if number.isdigit() else 0
