"""What a machine says of itself when a test there has failed: without it, a fault that is seen once stays a riddle."""

from __future__ import annotations

import subprocess
from typing import Protocol

from deploy.image.machine import MachineError

# Each command, and how many of its last lines are kept: a run's log is cut where it is long.
ASKED = (
    ("zpool status -v", 60),
    ("zpool events | tail -n 25", 25),
    ("dmesg --level=emerg,alert,crit,err,warn | tail -n 40", 40),
    ("systemctl --failed --no-legend", 10),
    ("journalctl -q --no-pager -o short-monotonic -p warning -n 40", 40),
    ("uptime; free -m; df -h /", 10),
)


class Asked(Protocol):
    """What of a machine is needed here."""

    def shell(self, script: str, *, timeout: float = 300, check: bool = True) -> str: ...


def describe_machine(machine: Asked) -> str:
    """The pools, their last events, what the kernel and the services complained of.
    Never raises: a machine that does not answer is described by that."""
    parts = []
    for command, kept in ASKED:
        try:
            said = machine.shell(f"{command} 2>&1", timeout=60, check=False)
        except (MachineError, OSError, subprocess.SubprocessError) as error:
            parts.append(f"$ {command}\nno answer: {error}")
            break
        parts.append("\n".join([f"$ {command}", *said.splitlines()[-kept:]]))
    return "\n".join(parts)
