"""End one connection, or all connections of a user."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection

from appliance import command
from appliance.errors import Failed
from appliance.operation import Work
from appliance.shares import connections
from appliance.shares.connections import Connection

SECONDS_TO_END = 15.0


def end_connections(found: Collection[Connection]) -> None:
    """End these connections and wait until the servers no longer list them. Raises Failed."""
    for one in found:
        ask_to_end(one)
    ended, protocols = {one.identity for one in found}, {one.protocol for one in found}
    until = time.monotonic() + SECONDS_TO_END
    while left := sorted({one.name for one in connections.read_connections(protocols) if one.identity in ended}):
        if time.monotonic() > until:
            raise Failed(f"The connection of {' and of '.join(left)} does not end")
        time.sleep(0.2)


def ask_to_end(one: Connection) -> None:
    """Tell a server to end a connection; no error if it has already ended. Raises Failed."""
    try:
        if one.protocol == "smb":
            command.run(["smbcontrol", one.id, "shutdown"], timeout=60, accept=range(256))
        elif one.protocol == "nfs":
            (connections.NFS_CLIENTS / one.id / "ctl").write_text("expire\n")
        else:
            os.kill(int(one.id), signal.SIGTERM)
    except (FileNotFoundError, ProcessLookupError):
        return
    except OSError as error:
        raise Failed(f"The connection of {one.name} could not be ended", str(error)) from error


def disconnect_user(name: str, work: Work) -> None:
    """Disconnect an account everywhere; nothing to do where nobody is connected. NFS knows no accounts. Raises Failed."""
    found = [one for one in connections.read_connections(("smb", "afp")) if one.user.lower() == name]
    end_connections(found)
    work.note(f"{len(found)} connections were ended" if found else f"{name} was not connected")
