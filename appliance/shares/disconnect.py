"""End what somebody has open over SMB and AFP: both serve each connection by a process of its own."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from appliance import command
from appliance.errors import Failed
from appliance.operation import Work
from appliance.shares import connections

SECONDS_TO_END = 15.0


def smb_processes(answer: object, name: str) -> Iterator[int]:
    """The processes of Samba that serve that account, from ``smbstatus --json``."""
    for one in connections.smb_connections(answer):
        if one.user.lower() == name:
            yield int(one.id)


def afp_processes(uid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """The processes of netatalk that act as that user."""
    for process in proc.iterdir():
        try:
            if process.name.isdigit() and (process / "comm").read_text().strip() == "afpd":
                uids = next(line for line in (process / "status").read_text().splitlines() if line.startswith("Uid:"))
                if str(uid) in uids.split()[1:]:
                    yield int(process.name)
        except (OSError, StopIteration):
            continue


def end(name: str, uid: int, work: Work) -> None:
    """Disconnect the account everywhere; nothing to do where nobody is connected. Raises Failed."""
    result = command.run(["smbstatus", "--json"], timeout=60, accept=range(256))
    try:
        answer = json.loads(result.stdout)
    except ValueError:
        answer = None
    ended = sorted(set(smb_processes(answer, name)))
    for pid in ended:
        # It may have ended by itself meanwhile.
        command.run(["smbcontrol", str(pid), "shutdown"], timeout=60, accept=range(256))
    for pid in afp_processes(uid) if uid else ():
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
        except OSError as error:
            raise Failed(f"A connection of {name} could not be ended", str(error)) from error
        ended.append(pid)
    until = time.monotonic() + SECONDS_TO_END
    while left := [pid for pid in ended if Path(f"/proc/{pid}").exists()]:
        if time.monotonic() > until:
            raise Failed(f"{len(left)} connections of {name} do not end")
        time.sleep(0.1)
    work.note(f"{len(ended)} connections were ended" if ended else f"{name} was not connected")
