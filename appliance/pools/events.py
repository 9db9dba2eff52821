"""Events of ZFS (zpool-events(8)) in plain words: what the system noticed about a pool and its disks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from appliance.facts import vdev_state
from appliance.formatting import link_label
from appliance.message import Message, join_messages, message_template

# The last part of the event's class, what it means, and the state that its mark shows.
WORDS: dict[str, tuple[str, str]] = {
    "checksum": (message_template("{disk} gave back something other than what was written."), "attention"),
    "io": (message_template("{disk} failed to read or write."), "attention"),
    "data": (message_template("Something in the pool could not be read."), "failed"),
    "authentication": (message_template("Encrypted data failed its check."), "failed"),
    "delay": (message_template("{disk} took very long to answer."), "attention"),
    "dio_verify_wr": (
        message_template("A program changed data while it was being written (direct I/O), so ZFS refused the write."),
        "attention",
    ),
    "dio_verify_rd": (
        message_template("Data that a program read past the cache (direct I/O) failed its check. ZFS read it again."),
        "attention",
    ),
    "deadman": (message_template("{disk} does not finish a request."), "attention"),
    "probe_failure": (message_template("{disk} did not answer a test."), "attention"),
    "io_failure": (message_template("The pool has stopped: too many disks do not answer."), "failed"),
    "log_replay": (message_template("The last writes before a crash could not be read from the log device."), "failed"),
    "vdev.open_failed": (message_template("{disk} could not be opened."), "attention"),
    "vdev.corrupt_data": (message_template("{disk} holds damaged labels."), "attention"),
    "vdev.no_replicas": (message_template("No disk is left that holds the same data."), "failed"),
    "vdev.bad_guid_sum": (message_template("A disk of the pool is missing."), "attention"),
    "vdev.too_small": (message_template("{disk} is smaller than it was."), "attention"),
    "vdev.bad_label": (message_template("{disk} carries the label of another pool."), "attention"),
    "vdev.bad_ashift": (
        message_template("{disk} cannot be used: its sectors are larger than the pool was made for."),
        "attention",
    ),
    "vdev.unknown": (message_template("{disk} is not known to the pool any more."), "attention"),
    "zpool": (message_template("The pool could not be imported."), "failed"),
    "config_cache_write": (message_template("The list of pools to open at startup could not be saved."), "attention"),
    "statechange": (message_template("{disk} is {state} now."), "attention"),
    "removed": (message_template("{disk} was pulled out."), "attention"),
    "autoreplace": (message_template("{disk} was found to be new and may replace the old one."), "unknown"),
    "pool_create": (message_template("The pool was created."), "healthy"),
    "pool_destroy": (message_template("The pool was destroyed."), "unknown"),
    "pool_export": (message_template("The pool was exported."), "unknown"),
    "pool_import": (message_template("The pool was imported."), "healthy"),
    "pool_reguid": (message_template("The pool got a new identity."), "unknown"),
    "scrub_start": (message_template("A scrub began."), "working"),
    "scrub_finish": (message_template("The scrub finished."), "healthy"),
    "scrub_abort": (message_template("The scrub was stopped."), "empty"),
    "scrub_paused": (message_template("The scrub was paused."), "empty"),
    "scrub_resume": (message_template("The scrub was resumed."), "working"),
    "errorscrub_start": (message_template("A scrub of the known errors began."), "working"),
    "errorscrub_finish": (message_template("The scrub of the known errors finished."), "healthy"),
    "errorscrub_abort": (message_template("The scrub of the known errors was stopped."), "empty"),
    "errorscrub_paused": (message_template("The scrub of the known errors was paused."), "empty"),
    "errorscrub_resume": (message_template("The scrub of the known errors was resumed."), "working"),
    "resilver_start": (message_template("A rebuild began."), "working"),
    "resilver_finish": (message_template("The rebuild finished."), "healthy"),
    "trim_start": (message_template("Trimming of {disk} began."), "working"),
    "trim_finish": (message_template("Trimming of {disk} finished."), "healthy"),
    "trim_cancel": (message_template("Trimming of {disk} was stopped."), "empty"),
    "trim_suspend": (message_template("Trimming of {disk} was paused."), "empty"),
    "trim_resume": (message_template("Trimming of {disk} continued."), "working"),
    "initialize_start": (message_template("Writing through the free space of {disk} began."), "working"),
    "initialize_finish": (message_template("Writing through the free space of {disk} finished."), "healthy"),
    "initialize_cancel": (message_template("Writing through the free space of {disk} was stopped."), "empty"),
    "initialize_suspend": (message_template("Writing through the free space of {disk} was paused."), "empty"),
    "initialize_resume": (message_template("Writing through the free space of {disk} continued."), "working"),
    "vdev_add": (message_template("A device was added."), "healthy"),
    "vdev_attach": (message_template("{disk} was attached."), "healthy"),
    "vdev_clear": (message_template("The error counts of {disk} were cleared."), "healthy"),
    "vdev_online": (message_template("{disk} came online."), "healthy"),
    "vdev_spare": (message_template("A spare disk stands in."), "attention"),
    # Sent for every disk that grows and, when growing is switched on, for every disk there is (spa_async_autoexpand).
    "vdev_autoexpand": (message_template("ZFS checked whether {disk} has become larger."), "unknown"),
    "vdev_check": (message_template("ZFS looked for {disk}."), "unknown"),
    "vdev_remove": (message_template("{disk} was removed."), "unknown"),
    "vdev_remove_aux": (message_template("A cache or spare device was removed."), "unknown"),
    "vdev_remove_dev": (message_template("A device was removed."), "unknown"),
    "bootfs_vdev_attach": (message_template("A disk was attached to the pool that the system starts from."), "unknown"),
}
QUIET = ("history_event", "config_sync", "config.sync")  # ZFS's own book-keeping says nothing to a person


class Noticed(msgspec.Struct, frozen=True):
    """An event as a person reads it. ``detail`` names the numbers behind it."""

    sentence: str
    state: str
    detail: str = ""


# Each count of a disk: what it says of one and of more.
COUNTS = {
    "ZEVENT_VDEV_READ_ERRORS": (message_template("{count} read error"), message_template("{count} read errors")),
    "ZEVENT_VDEV_WRITE_ERRORS": (message_template("{count} write error"), message_template("{count} write errors")),
    "ZEVENT_VDEV_CKSUM_ERRORS": (
        message_template("{count} checksum error"),
        message_template("{count} checksum errors"),
    ),
}


def disk_name(fields: Mapping[str, str]) -> str:
    path = fields.get("ZEVENT_VDEV_PATH", "")
    return link_label(Path(path).name.rsplit("-part", 1)[0]) if path else Message("A disk")


def describe_event(kind: str, fields: Mapping[str, str]) -> Noticed:
    """What an event says. ``kind`` is its class, such as ``ereport.fs.zfs.checksum``."""
    last = kind.partition(".fs.zfs.")[2] or kind
    sentence, state = WORDS.get(last, (message_template("ZFS reported an event."), "unknown"))
    # ZEVENT_VDEV_STATE is the same as a number.
    now = vdev_state.describe(fields.get("ZEVENT_VDEV_STATE_STR", "").upper())
    if last == "statechange" and now.level == "healthy":
        state = "healthy"
    counts = [
        Message(one if fields[name] == "1" else many, count=fields[name])
        for name, (one, many) in COUNTS.items()
        if fields.get(name, "0") not in {"", "0"}
    ]
    text = Message(sentence, state=now.word, disk=disk_name(fields))
    return Noticed(text, state, join_messages(counts, ", "))
