"""What was done to a pool, from ``zpool history -il``, in plain words. All of it is text from the disks: hostile.

A line is ``2026-11-20.23:14:05 zpool scrub tank [user 0 (root) on larder:linux]`` for a command and
``2026-11-20.23:14:05 [txg:17] scan setup func=1 mintxg=0 maxtxg=17 [on larder]`` for what ZFS notes itself
(cmd/zpool/zpool_main.c, ``print_history_records``). Times are of the reader's zone, which is UTC here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from appliance import command, names
from appliance.message import Message, join_messages
from appliance.request import Request

KEPT = 1500
LONGEST = 1000
LINE = re.compile(r"(\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d)(?: \(\d+ms\))? (.+)")
INTERNAL = re.compile(r"\[(?:internal )?[^\]]*txg:\d+\] (.+)")
BY = re.compile(r"\[(?:user \d+ (?:\((?P<user>[^)]*)\) )?)?(?:on (?P<host>[^\]]*))?\]")

# What ZFS itself notes, as far as it says more than the commands; the rest is its book-keeping.
NOTED: dict[str, str] = {
    "scan setup": Message("A scrub or rebuild began."),
    "scan done": Message("The scrub or rebuild finished."),
    "scan cancelled": Message("The scrub or rebuild was stopped."),
    "scan aborted, restarting": Message("The rebuild started again, because another disk joined it."),
    "starting deferred resilver": Message("A rebuild that had waited began."),
    "vdev attach": Message("A disk was attached or replaced."),
    "vdev online": Message("A device came online and the pool grew."),
    "detach": Message("A disk was detached."),
    "vdev remove started": Message("A device began to be emptied, to be removed."),
    "vdev remove completed": Message("A device was removed."),
    "vdev remove canceled": Message("Removing a device was stopped."),
    "vdev remove": Message("A log, cache or spare device was removed."),
    "raidz vdev expansion started": Message("Growing a raidz group by a disk began."),
    "raidz vdev expansion completed": Message("A raidz group has grown by a disk."),
    "trim": Message("Trimming of a disk began, finished or was stopped."),
    "initialize": Message("Writing through the free space of a disk began, finished or was stopped."),
    "rebuild": Message("A sequential rebuild of a disk began or finished."),
    "spa checkpoint": Message("A checkpoint was taken."),
    "spa discard checkpoint": Message("The checkpoint was discarded."),
    "checkpoint rewind": Message("The pool went back to its checkpoint."),
    "split": Message("The pool was split off from another."),
    "guid change": Message("The pool got a new identity."),
    "create pool version": Message("The pool was created."),
    "open pool version": Message("The pool was opened, as at every start of the box."),
    "import pool version": Message("The pool was imported."),
}
SCAN_KIND = {"func=1": Message("A scrub began."), "func=2": Message("A rebuild began.")}
OUTCOMES: dict[tuple[str, str], str] = {
    ("trim", "activated"): Message("Trimming a disk began."),
    ("trim", "complete"): Message("Trimming a disk finished."),
    ("trim", "suspended"): Message("Trimming a disk was paused."),
    ("trim", "canceled"): Message("Trimming a disk was stopped."),
    ("initialize", "activated"): Message("Writing through the free space of a disk began."),
    ("initialize", "complete"): Message("Writing through the free space of a disk finished."),
    ("initialize", "suspended"): Message("Writing through the free space of a disk was paused."),
    ("initialize", "canceled"): Message("Writing through the free space of a disk was stopped."),
}
COMMANDS: dict[tuple[str, str], str] = {
    ("zpool", "create"): Message("The pool was created."),
    ("zpool", "destroy"): Message("The pool was destroyed."),
    ("zpool", "import"): Message("The pool was imported."),
    ("zpool", "export"): Message("The pool was exported."),
    ("zpool", "scrub"): Message("A scrub was asked for."),
    ("zpool", "resilver"): Message("A rebuild was asked to start again."),
    ("zpool", "trim"): Message("Trimming was asked for."),
    ("zpool", "initialize"): Message("Writing through the free space was asked for."),
    ("zpool", "clear"): Message("The error counts were cleared."),
    ("zpool", "online"): Message("A disk was brought online."),
    ("zpool", "offline"): Message("A disk was taken offline."),
    ("zpool", "attach"): Message("A disk was attached."),
    ("zpool", "detach"): Message("A disk was detached."),
    ("zpool", "replace"): Message("A disk was replaced."),
    ("zpool", "add"): Message("Devices were added."),
    ("zpool", "remove"): Message("A device was removed."),
    ("zpool", "set"): Message("A setting of the pool was changed."),
    ("zpool", "upgrade"): Message("The pool was upgraded with new features."),
    ("zpool", "checkpoint"): Message("A checkpoint was taken or discarded."),
    ("zpool", "split"): Message("A new pool was split off."),
    ("zpool", "reguid"): Message("The pool got a new identity."),
    ("zfs", "create"): Message("A folder was created."),
    ("zfs", "destroy"): Message("A folder or snapshot was destroyed."),
    ("zfs", "snapshot"): Message("A snapshot was taken."),
    ("zfs", "rollback"): Message("A folder went back to a snapshot."),
    ("zfs", "clone"): Message("A folder was made from a snapshot."),
    ("zfs", "promote"): Message("A clone took over from its origin."),
    ("zfs", "rename"): Message("A folder or snapshot got a new name."),
    ("zfs", "set"): Message("A setting of a folder was changed."),
    ("zfs", "inherit"): Message("A folder inherits a setting from the folder above again."),
    ("zfs", "receive"): Message("A folder was received from elsewhere."),
    ("zfs", "recv"): Message("A folder was received from elsewhere."),
    ("zfs", "hold"): Message("A snapshot was protected from deletion."),
    ("zfs", "release"): Message("A snapshot was released."),
    ("zfs", "load-key"): Message("A folder was unlocked."),
    ("zfs", "unload-key"): Message("A folder was locked."),
    ("zfs", "change-key"): Message("A passphrase was changed."),
    ("zfs", "upgrade"): Message("Folders were upgraded to a newer version."),
}


class HistoryEntry(msgspec.Struct, frozen=True):
    """One line. ``kind`` is ``command`` or ``noted``; ``by`` the account and box it names."""

    at: datetime
    kind: str
    text: str
    by: str = ""


def known_note(text: str) -> str:
    """With which of NOTED a note begins, as whole words: ``set feature@device_rebuild=enabled`` rebuilds nothing."""
    return next((begins for begins in NOTED if f"{text} ".startswith(f"{begins} ")), "")


def is_interesting(text: str) -> bool:
    noted = INTERNAL.match(text)
    return noted is None or bool(known_note(noted[1]))


def kept_lines(lines: Iterable[str]) -> list[str]:
    """The latest lines worth keeping: commands, and of ZFS's own notes what says more. The dumps of ioctls are not."""
    found: list[str] = []
    for line in lines:
        parts = LINE.match(line)
        if parts and not parts[2].startswith("ioctl ") and is_interesting(parts[2]):
            found.append(line[:LONGEST])
            if len(found) > 2 * KEPT:
                del found[:KEPT]
    return found[-KEPT:]


def read_history(pool: str) -> list[str]:
    """The lines of a pool's history, oldest first. Only root may read it. Raises Failed."""
    result = command.run(["zpool", "history", "-i", "-l", "--", names.existing_pool(pool)], timeout=120)
    return kept_lines(result.stdout.splitlines())


def parse_entries(lines: Iterable[object]) -> Iterator[HistoryEntry]:
    """Lines as entries; what is no line of history is passed over."""
    for line in lines:
        parts = LINE.match(line) if isinstance(line, str) else None
        if parts is None:
            continue
        try:
            at = datetime.strptime(parts[1], "%Y-%m-%d.%H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            continue
        text, by = parts[2], ""
        head, bracket, tail = text.rpartition(" [")
        if bracket and (who := BY.fullmatch(f"[{tail}")):
            text, by = head, "@".join(filter(None, [who["user"] or "", (who["host"] or "").partition(":")[0]]))
        noted = INTERNAL.match(text)
        yield HistoryEntry(at, "noted" if noted else "command", (noted[1] if noted else text)[:LONGEST], by[:120])


def describe_entry(kind: str, text: str) -> str:
    """What an entry means, in a sentence."""
    if kind == "noted":
        begins = known_note(text)
        return noted_words(begins, NOTED[begins], text) if begins else Message("ZFS noted an internal event.")
    try:
        argv = shlex.split(text)
    except ValueError:
        argv = text.split()
    tool, verb = ([*argv, "", ""])[:2]
    if (tool, verb) == ("zpool", "scrub") and "-s" in argv:
        return Message("The scrub was asked to stop.")
    if (tool, verb) == ("zpool", "scrub") and "-p" in argv:
        return Message("The scrub was asked to pause.")
    return COMMANDS.get((tool, verb), Message("A command was run."))


def noted_words(begins: str, sentence: str, text: str) -> str:
    if begins == "scan setup":
        return next((said for mark, said in SCAN_KIND.items() if mark in text.split()), sentence)
    if begins in {"trim", "initialize"}:
        return OUTCOMES.get((begins, text.rsplit(" ", 1)[-1]), sentence)
    if begins == "scan done" and (found := re.search(r"errors=(\d+)", text)):
        few = {"0": Message("No errors were left."), "1": Message("1 error was left.")}
        return join_messages([sentence, few.get(found[1], Message("{left} errors were left.", left=found[1]))])
    return sentence


class ReadHistory(Request, tag="read-history"):
    """What was done to a pool, the latest lines."""

    pool: str

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)

    def read(self) -> object:
        return {"lines": read_history(self.pool)}
