"""Query disks by smartctl without waking one that sleeps.

``smartctl -n standby`` says SLEEP of every disk that does not answer when asked for its power mode
(ataprint.cpp, scsiprint.cpp), also of one whose USB case does not pass that command on. Only a command of the
host puts a disk into that mode, and its next work ends it. So such a disk counts as asleep only while the
kernel's counter of its requests stands still.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from appliance.command import Result
from appliance.disks import latency, query, smart_answer
from appliance.system import paths

SMARTCTL = ["smartctl", "--json"]
WITH_TEXT = ["smartctl", "--json=o"]  # some things about SCSI drives are in no other part of the answer
GENTLY = ["-n", "standby"]
log = logging.getLogger(__name__)


class WorkNote(msgspec.Struct, frozen=True):
    """What the last reading of a disk without a power mode found: its requests until then,
    and whether it had worked."""

    requests: int
    worked: bool


def query_if_awake(path: str, options: Sequence[str], *, timeout: float) -> Result:
    """Run smartctl with these options unless the disk sleeps, which its answer says then.
    Raises what ``query_disk`` does."""
    result = query.query_disk(path, [*SMARTCTL, *GENTLY, *options], timeout=timeout)
    if smart_answer.is_mode_unsure(smart_answer.parse_json(result.stdout)) and has_worked(path):
        return query.query_disk(path, [*SMARTCTL, *options], timeout=timeout)
    return result


def read_if_awake(path: str, options: Sequence[str], *, timeout: float) -> Result:
    """The same for the regular reading of a disk, which notes how much the disk had worked until then."""
    requests = count_requests(path)
    result = query.query_disk(path, [*WITH_TEXT, *GENTLY, *options], timeout=timeout)
    if requests is None or not smart_answer.is_mode_unsure(smart_answer.parse_json(result.stdout)):
        return result
    before = read_note(path)
    worked = before is not None and before.requests != requests
    try:
        note_path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        note_path(path).write_bytes(msgspec.json.encode(WorkNote(requests, worked)))
    except OSError:
        log.exception("how much %s has worked could not be noted, so it counts as asleep", path)
        return result
    return query.query_disk(path, [*WITH_TEXT, *options], timeout=timeout) if worked else result


def has_worked(path: str) -> bool:
    """Whether the last reading found that the disk had worked, or the disk has since."""
    note, requests = read_note(path), count_requests(path)
    return note is not None and (note.worked or requests not in {None, note.requests})


def count_requests(path: str) -> int | None:
    """The kernel's counter of a disk's reads and writes; smartctl's own commands are not in it."""
    try:
        found = latency.read_counters().get(Path(path).resolve().name)
    except OSError:
        return None
    return found.requests if found else None


def note_path(path: str) -> Path:
    return paths.ASKED / f"{Path(path).name}.work"


def read_note(path: str) -> WorkNote | None:
    try:
        return msgspec.json.decode(note_path(path).read_bytes(), type=WorkNote)
    except (OSError, msgspec.MsgspecError):
        return None
