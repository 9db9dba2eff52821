"""Events of ZFS (zpool-events(8)) in plain words: what the system noticed about a pool and its disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.facts import vdev_state
from appliance.formatting import link_label

# The last part of the event's class, what it means, and the state that its mark shows.
WORDS: dict[str, tuple[str, str]] = {
    "checksum": ("{disk} gave back something other than what was written.", "attention"),
    "io": ("{disk} failed to read or write.", "attention"),
    "data": ("Something in the pool could not be read.", "failed"),
    "authentication": ("Encrypted data was not what it should be.", "failed"),
    "delay": ("{disk} took very long to answer.", "attention"),
    "deadman": ("{disk} does not finish a request.", "attention"),
    "probe_failure": ("{disk} did not answer a test.", "attention"),
    "io_failure": ("The pool has stopped: too many disks do not answer.", "failed"),
    "log_replay": ("The last writes before a crash could not be read from the log device.", "failed"),
    "vdev.open_failed": ("{disk} could not be opened.", "attention"),
    "vdev.corrupt_data": ("{disk} holds damaged labels.", "attention"),
    "vdev.no_replicas": ("No disk is left that holds the same data.", "failed"),
    "vdev.bad_guid_sum": ("A disk of the pool is missing.", "attention"),
    "vdev.too_small": ("{disk} is smaller than it was.", "attention"),
    "vdev.bad_label": ("{disk} carries the label of another pool.", "attention"),
    "vdev.unknown": ("{disk} is not known to the pool any more.", "attention"),
    "zpool": ("The pool could not be imported.", "failed"),
    "statechange": ("{disk} is {state} now.", "attention"),
    "removed": ("{disk} was pulled out.", "attention"),
    "autoreplace": ("{disk} was found to be new and may replace the old one.", "unknown"),
    "pool_create": ("The pool was made.", "healthy"),
    "pool_destroy": ("The pool was destroyed.", "unknown"),
    "pool_export": ("The pool was exported.", "unknown"),
    "pool_import": ("The pool was imported.", "healthy"),
    "pool_reguid": ("The pool got a new identity.", "unknown"),
    "scrub_start": ("A check (scrub) began.", "working"),
    "scrub_finish": ("The check (scrub) was done.", "healthy"),
    "scrub_abort": ("The check (scrub) was stopped.", "empty"),
    "scrub_paused": ("The check (scrub) was paused.", "empty"),
    "scrub_resume": ("The check (scrub) went on.", "working"),
    "errorscrub_start": ("A check of the known errors began.", "working"),
    "errorscrub_finish": ("The check of the known errors was done.", "healthy"),
    "resilver_start": ("A rebuilding began.", "working"),
    "resilver_finish": ("The rebuilding was done.", "healthy"),
    "trim_start": ("Trimming of {disk} began.", "working"),
    "trim_finish": ("Trimming of {disk} was done.", "healthy"),
    "trim_cancel": ("Trimming of {disk} was stopped.", "empty"),
    "trim_suspend": ("Trimming of {disk} was paused.", "empty"),
    "trim_resume": ("Trimming of {disk} went on.", "working"),
    "initialize_start": ("Writing through the free space of {disk} began.", "working"),
    "initialize_finish": ("Writing through the free space of {disk} was done.", "healthy"),
    "initialize_cancel": ("Writing through the free space of {disk} was stopped.", "empty"),
    "initialize_suspend": ("Writing through the free space of {disk} was paused.", "empty"),
    "initialize_resume": ("Writing through the free space of {disk} went on.", "working"),
    "vdev_add": ("A device was added.", "healthy"),
    "vdev_attach": ("{disk} was attached.", "healthy"),
    "vdev_clear": ("The error counts of {disk} were set back.", "healthy"),
    "vdev_online": ("{disk} came online.", "healthy"),
    "vdev_spare": ("A spare disk stands in.", "attention"),
    # Sent for every disk that grows and, when growing is switched on, for every disk there is (spa_async_autoexpand).
    "vdev_autoexpand": ("ZFS looked whether {disk} has become larger.", "unknown"),
    "vdev_check": ("{disk} was looked for.", "unknown"),
    "vdev_remove": ("{disk} was removed.", "unknown"),
    "vdev_remove_aux": ("A cache or spare device was removed.", "unknown"),
    "vdev_remove_dev": ("A device was removed.", "unknown"),
    "bootfs_vdev_attach": ("A disk was attached to the pool that the system starts from.", "unknown"),
}
QUIET = ("history_event", "config_sync", "config.sync")  # ZFS's own book-keeping says nothing to a person


@dataclass(frozen=True)
class Noticed:
    """An event as a person reads it. ``detail`` names the numbers behind it."""

    sentence: str
    state: str
    detail: str = ""


def disk_name(fields: Mapping[str, str]) -> str:
    path = fields.get("ZEVENT_VDEV_PATH", "")
    return link_label(Path(path).name.rsplit("-part", 1)[0]) if path else "A disk"


def describe_event(kind: str, fields: Mapping[str, str]) -> Noticed:
    """What an event says. ``kind`` is its class, such as ``ereport.fs.zfs.checksum``."""
    last = kind.partition(".fs.zfs.")[2] or kind
    sentence, state = WORDS.get(last, ("ZFS noted something.", "unknown"))
    # ZEVENT_VDEV_STATE is the same as a number.
    now = vdev_state.describe(fields.get("ZEVENT_VDEV_STATE_STR", "").upper())
    if last == "statechange" and now.level == "healthy":
        state = "healthy"
    counts = [
        f"{fields[name]} {what} error{'' if fields[name] == '1' else 's'}"
        for name, what in (
            ("ZEVENT_VDEV_READ_ERRORS", "read"),
            ("ZEVENT_VDEV_WRITE_ERRORS", "write"),
            ("ZEVENT_VDEV_CKSUM_ERRORS", "checksum"),
        )
        if fields.get(name, "0") not in {"", "0"}
    ]
    text = sentence.replace("{state}", now.word).replace("{disk}", disk_name(fields))
    return Noticed(text, state, ", ".join(counts))
