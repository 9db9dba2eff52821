"""Signs of life for systemd's watchdog, and the note that tells the next worker why the last one was restarted.

Only a tick that has ended counts as life. What the clock is at, and since when, stands in a file in memory:
a worker that is killed leaves it there, and the one that follows sees by its age that the last one hung.
One that is stopped removes it.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from datetime import datetime
from pathlib import Path

import msgspec
from django.utils import timezone
from msgspec.structs import asdict

from appliance.system import paths

log = logging.getLogger(__name__)
USUAL_SECONDS = 300  # WatchdogSec= of larder-worker.service


class Restart(msgspec.Struct, frozen=True):
    """The last restart because the worker hung: when, in what, and how many there were since the box started."""

    at: datetime
    stage: str
    count: int


def timeout_seconds() -> float:
    """Seconds that systemd waits for a finished tick."""
    try:
        return int(os.environ["WATCHDOG_USEC"]) / 1e6
    except (KeyError, ValueError):
        return USUAL_SECONDS


def notify_systemd(text: str) -> None:
    """Tell systemd (sd_notify(3)). Does nothing where it did not ask."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as teller:
            teller.settimeout(5)
            teller.connect(f"\0{address[1:]}" if address.startswith("@") else address)
            teller.sendall(text.encode())
    except OSError as problem:
        log.warning("systemd could not be told: %s", problem)


def stage_file() -> Path:
    return paths.RUN / "inventory" / "at-work.json"


def restarts_file() -> Path:
    return paths.RUN / "inventory" / "restarts.json"


def write_note(path: Path, content: object) -> None:
    beside = path.with_suffix(".new")
    try:
        beside.write_text(json.dumps(content))
        beside.replace(path)
    except OSError as problem:
        log.warning("%s could not be written: %s", path.name, problem)


def read_note(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


_ended = [time.monotonic()]  # when the last tick of this process ended


def note_stage(stage: str, since: float) -> None:
    """Note the stage of the clock, and since when its tick runs.

    A process that stood still for longer than systemd waits is woken to be ended, and its clock may go on for a moment:
    the note keeps since when it stood still.
    """
    if time.monotonic() - _ended[0] > timeout_seconds():
        since = min(since, _ended[0])
    write_note(stage_file(), {"stage": stage, "since": since})


def note_finished() -> None:
    """Note the end of a tick and tell systemd."""
    _ended[0] = time.monotonic()
    note_stage("", _ended[0])
    notify_systemd("WATCHDOG=1")


def note_restart() -> Restart | None:
    """At the start: note a restart where the last worker hung; returns it."""
    found = read_note(stage_file())
    stage_file().unlink(missing_ok=True)
    since = found.get("since")
    # One that was killed for another reason is followed by the next within seconds.
    if not isinstance(since, int | float) or time.monotonic() - since < 0.8 * timeout_seconds():
        return None
    known = last_restart()
    restart = Restart(timezone.now(), str(found.get("stage", "")), known.count + 1 if known else 1)
    log.warning("the last worker hung in %s and was restarted", restart.stage or "no part of the clock")
    write_note(restarts_file(), {**asdict(restart), "at": restart.at.isoformat()})
    return restart


def last_restart() -> Restart | None:
    found = read_note(restarts_file())
    try:
        return Restart(datetime.fromisoformat(str(found["at"])), str(found["stage"]), int(str(found["count"])))
    except (KeyError, ValueError):
        return None
