"""Open a port for a minute, against which another computer measures the bare network."""

from __future__ import annotations

import os
import secrets
from typing import Any

from appliance import command
from appliance.benchmarks.wire_listener import KEY_BYTES, PORT, SECONDS_OF_ONE
from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.request import Request
from appliance.system import paths

UNIT = "larder-wire.service"
SECONDS_TO_START = 90  # an emulated box takes its time


class OpenWire(Request, tag="open-wire"):
    """Start the listener (``wire_listener.py``). It has no fields: port, time and bytes are
    not the caller's to choose."""

    def read(self) -> dict[str, Any]:
        """The port, the key that it wants, and for how many seconds each way is measured. Raises Refused, Failed."""
        state = command.run(["systemctl", "is-active", UNIT], accept=(0, 3, 4)).stdout.strip()
        if state not in {"inactive", "failed"}:
            raise Refused(
                Reason("wire-in-use", "Another computer measures the network just now. Try again in a minute.")
            )
        key, path = secrets.token_hex(KEY_BYTES), paths.RUN / "wire-key"
        # The folder belongs to root, so nobody else can have put a link there.
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(key)
            command.run(["systemctl", "start", UNIT], timeout=SECONDS_TO_START)
        except Failed as error:
            raise Failed(
                Message("Port {port} could not be opened for the measurement", port=PORT), error.said
            ) from error
        finally:
            path.unlink(missing_ok=True)
        return {"port": PORT, "key": key, "seconds": SECONDS_OF_ONE}
