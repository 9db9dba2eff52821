"""End one connection, or all connections of a user."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Collection
from pathlib import Path

from appliance import command
from appliance.errors import Failed
from appliance.formatting import list_with_and
from appliance.message import Message
from appliance.operation import Work
from appliance.shares import connections
from appliance.shares.connections import Connection
from appliance.shares.settings import Protocol

SECONDS_TO_END = 15.0
EXPIRE = "expire"
WITH_USERS: tuple[Protocol, ...] = ("smb", "afp")  # NFS knows no users


def end_connections(found: Collection[Connection]) -> None:
    """End these connections and wait until the servers no longer list them. Raises Failed."""
    for one in found:
        ask_to_end(one)
    ended, protocols = {one.identity for one in found}, {one.protocol for one in found}
    until = time.monotonic() + SECONDS_TO_END
    while left := sorted({one.name for one in connections.read_connections(protocols) if one.identity in ended}):
        if time.monotonic() > until:
            raise Failed(Message("The connection of {left} does not end", left=list_with_and(left)))
        time.sleep(0.2)


def smbcontrol_argv(process: str) -> list[str]:
    return ["smbcontrol", process, "shutdown"]


def nfs_control(client: str) -> Path:
    """The file of the kernel that takes orders about an NFS client (knfsd)."""
    return connections.NFS_CLIENTS / client / "ctl"


def describe_end(protocol: Protocol, number: str) -> str:
    """What ``ask_to_end`` does, as a plan shows it: a command, or words where it runs none."""
    if protocol == "smb":
        return shlex.join(smbcontrol_argv(number))
    if protocol == "nfs":
        return f"write “{EXPIRE}” into {nfs_control(number)}"
    return Message("send SIGTERM to the process {number} (afpd)", number=number)


def ask_to_end(one: Connection) -> None:
    """Tell a server to end a connection; no error if it has already ended. Raises Failed."""
    try:
        if one.protocol == "smb":
            command.run(smbcontrol_argv(one.id), timeout=60, accept=range(256))
        elif one.protocol == "nfs":
            nfs_control(one.id).write_text(f"{EXPIRE}\n")
        else:
            os.kill(int(one.id), signal.SIGTERM)
    except (FileNotFoundError, ProcessLookupError):
        return
    except OSError as error:
        raise Failed(Message("The connection of {one} could not be ended", one=one.name), str(error)) from error


def disconnect_user(name: str, work: Work) -> None:
    """Disconnect an account everywhere; nothing to do where nobody is connected. NFS knows no accounts.
    Raises Failed."""
    found = [one for one in connections.read_connections(WITH_USERS) if one.user.lower() == name]
    end_connections(found)
    if not found:
        work.note(Message("{name} was not connected", name=name))
    elif len(found) == 1:
        work.note(Message("1 connection was ended"))
    else:
        work.note(Message("{count} connections were ended", count=len(found)))
