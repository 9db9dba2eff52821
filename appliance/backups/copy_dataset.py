"""Bring the copy of one dataset up to a snapshot: decide, send, prove, and only then let go of what went before."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from appliance import command
from appliance.backups import copies, match, retention
from appliance.backups.stream import send_stream
from appliance.backups.tasks import BackupTask
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Bookmark, Dataset, Snapshot
from appliance.formatting import duration_text, size_text, time_left
from appliance.operation import Work
from appliance.snapshots.bookmarks import read_bookmarks
from appliance.zfs import libzfs, list_snapshots

PREFIX = "larder-backup-"  # of bookmarks
BOOKMARKS = 5  # that are kept: they cost nothing, and the newest copies may be destroyed at the destination
MOST_STREAMS = 4  # the rest of an interrupted run, what is discarded, the increment, and one look more
SECONDS_TO_ESTIMATE = 300
# Without these a stream may hold blocks that the destination cannot store (zpool-features(7)).
FEATURES = ("large_blocks", "embedded_data", "lz4_compress", "zstd_compress")
SIZE = re.compile(r"^size\t(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class DatasetCopy:
    """One dataset of a run: what is sent, and where. ``flags`` are those of ``zfs send`` for it."""

    task: BackupTask
    source: Dataset
    target: str
    short: str  # of the snapshot that the run has taken
    flags: tuple[str, ...]

    @property
    def raw(self) -> bool:
        return self.source.encryption != "off"

    @property
    def snapshot(self) -> str:
        return f"{self.source.name}@{self.short}"

    @property
    def bookmark_prefix(self) -> str:
        return f"{PREFIX}{self.task.key}-"

    def sender(self, decision: match.Decision, *more: str) -> list[str]:
        if decision.kind == "resume":
            # -w goes with it: a token that was made up would have an encrypted dataset sent decrypted (openzfs/zfs#14153).
            return ["zfs", "send", *more, *(["-w"] if self.raw else []), "-t", decision.token]
        base = ["-i", decision.base] if decision.base else []
        return ["zfs", "send", *more, *self.flags, *base, "--", self.snapshot]

    def receiver(self, decision: match.Decision) -> list[str]:
        new = copies.properties_of(self.source) if decision.kind == "full" else {}
        options = [word for key, value in new.items() for word in ("-o", f"{key}={value}")]
        return ["zfs", "receive", "-u", "-s", *options, self.target]

    def command_text(self, facts: Facts) -> str:
        """Both commands as they will most likely run; the run itself notes the ones that it used."""
        known = [
            one.name for one in facts.bookmarks if one.name.startswith(f"{self.source.name}#{self.bookmark_prefix}")
        ]
        kind = "increment" if facts.dataset(self.target) and known else "full"
        decision = match.Decision(kind, base=known[-1] if kind == "increment" else "")
        return f"{shlex.join(self.sender(decision))} | {shlex.join(self.receiver(decision))}"


def send_flags(source: Dataset, features: dict[str, str]) -> tuple[str, ...]:
    """The flags for a dataset's streams. Encrypted: as it lies on the disk (-w). Otherwise blocks stay large, compressed
    and embedded where the destination can store such."""
    if source.encryption != "off":
        return ("-w",)
    return ("-L", "-e", "-c") if all(features.get(name) in {"enabled", "active"} for name in FEATURES) else ()


def read_features(pool: str) -> dict[str, str]:
    """The state of FEATURES of a pool: enabled, active or disabled. Raises Failed."""
    wanted = ",".join(f"feature@{name}" for name in FEATURES)
    said = command.run(["zpool", "get", "-H", "-o", "property,value", wanted, pool], timeout=60).stdout
    rows = (line.split("\t") for line in said.splitlines())
    return {row[0].removeprefix("feature@"): row[1] for row in rows if len(row) == 2}


def run_copy(work: Work, one: DatasetCopy, zone: tzinfo) -> int:
    """Bring the copy up to the run's snapshot; the bytes that were sent. Raises Refused, Failed, Cancelled."""
    wanted = next((found.guid for found in list_snapshots.list_snapshots([one.source.name]) if found.short == one.short), 0)  # fmt: skip
    if not wanted:
        raise Failed(f"{one.snapshot} is gone", "It was destroyed before it was copied. Start the backup again.")
    moved = 0
    for _stream in range(MOST_STREAMS):
        copy = copies.read_copy(one.target)
        Refused.unless_empty(reason for reason in [match.conflict(one.source.name, one.source.guid, one.raw, copy)] if reason)  # fmt: skip
        decision = match.decide(one.source.name, copies.read_points(one.source.name), wanted, one.raw, copy)
        if isinstance(decision, Reason):
            raise Refused(decision)
        if decision.kind == "arrived":
            copies.settle(work, one.target, copies.properties_of(one.source))
            let_go(work, one, wanted, zone)
            return moved
        if decision.kind == "discard":
            work.note(f"What an interrupted run left in {one.target} no longer fits, so it is discarded.")
            command.run(["zfs", "receive", "-A", one.target], timeout=300)
            continue
        if decision.kind == "increment" and one.raw:
            check_keys(decision.base, one)
        moved += run_stream(work, one, decision)
    raise Failed(f"The copy of {one.source.name} is not complete", f"{one.target} does not show {one.short}.")


def run_stream(work: Work, one: DatasetCopy, decision: match.Decision) -> int:
    sender, receiver = one.sender(decision), one.receiver(decision)
    work.note(f"{shlex.join(sender)} | {shlex.join(receiver)}")
    total = estimate(one.sender(decision, "-n", "-P"))
    began = time.monotonic()

    def tell(moved: int) -> None:
        work.progress(*phrase(one.source.name, moved, total, time.monotonic() - began))
        work.stop_if_asked()

    moved = send_stream(sender, receiver, tell)
    work.note(f"{one.source.name}: {size_text(moved)} sent in {duration_text(int(time.monotonic() - began))}.")
    return moved


def phrase(name: str, moved: int, total: int, seconds: float) -> tuple[int, str]:
    """Percent, and what is said beside it. ZFS's estimate may be too small, so a stream that runs is never at 100 %."""
    rate = moved / seconds if seconds > 0 else 0.0
    said = f"{name}: {size_text(moved)} of about {size_text(max(total, moved))}"
    if rate > 0 and total > moved and seconds > 5:
        said += f", {size_text(int(rate))}/s, {time_left(int((total - moved) / rate))}"
    return (min(99, moved * 100 // total) if total else 0), said


def estimate(argv: Sequence[str]) -> int:
    """The bytes that a stream will have as ZFS estimates it; 0 where it does not say."""
    try:
        said = command.run(argv, timeout=SECONDS_TO_ESTIMATE)
    except command.CommandFailed:
        return 0  # the real command says why
    found = SIZE.search(said.stdout + said.stderr)
    return int(found[1]) if found and int(found[1]) < 2**62 else 0


def check_keys(base: str, one: DatasetCopy) -> None:
    """Refuse to continue an encrypted copy from a snapshot of another set of keys: equal guids do not rule it out
    (openzfs/zfs#8758). Bookmarks do not say."""
    if "@" not in base:
        return
    newest = copies.read_copy(one.target).guids[-1]
    name = next((found.name for found in list_snapshots.list_snapshots([one.target]) if found.guid == newest), "")
    ours, theirs = (copies.read_values(found, ["ivsetguid"]).get("ivsetguid") for found in (base, name))
    if ours and theirs and ours != theirs:
        raise Refused(
            Reason(
                "backup-keys-differ",
                "{source} and its copy {target} do not have the same keys. Set the copy aside; the next run makes a new one.",
                source=one.source.name,
                target=one.target,
            )
        )


def let_go(work: Work, one: DatasetCopy, arrived: int, zone: tzinfo) -> None:
    """After a snapshot has arrived: drop earlier bookmarks of the task, snapshots of earlier runs that no task continues
    from, and copies that are no longer kept. What cannot be destroyed is noted; the copy is good all the same."""
    name = one.source.name
    marks = sorted(
        (mark for mark in read_bookmarks([name]) if mark.short.startswith(PREFIX)), key=lambda mark: mark.txg
    )
    # Of each task the newest: what it continues from, and what the copy is compared with.
    bases = {mark.short.rpartition("-")[0]: mark.guid for mark in marks}.values()
    here = list(list_snapshots.list_snapshots([name]))
    at = next((found.txg for found in here if found.guid == arrived), 0)
    past = [found.name for found in own_snapshots(here, marks) if found.txg < at and found.guid not in bases]
    expired = retention.expired_copies(list(list_snapshots.list_snapshots([one.target])), one.task.keep, zone)
    for going in (past, [found.name for found in expired]):
        for left in libzfs.destroy_snapshots(going):
            work.note(f"{left.name} stays: {left.why}")
    for mark in [mark for mark in marks if mark.short.startswith(one.bookmark_prefix)][:-BOOKMARKS]:
        libzfs.destroy_bookmark(mark.name)


def own_snapshots(snapshots: Iterable[Snapshot], marks: Iterable[Bookmark]) -> list[Snapshot]:
    """The snapshots that runs have taken: they have the name, and a bookmark. One that somebody named like that has none."""
    marked = {mark.guid for mark in marks}
    return [one for one in snapshots if retention.is_backup(one.short) and one.guid in marked]


def withdraw(work: Work, one: DatasetCopy) -> None:
    """After a run that could not send anything of a dataset: destroy the snapshot that it took for it, and its bookmark.

    Otherwise each try would leave one, and they would keep the space of deleted files.
    """
    name = one.source.name
    marks = [mark for mark in read_bookmarks([name]) if mark.short.startswith(one.bookmark_prefix)]
    mine = [found for found in own_snapshots(list_snapshots.list_snapshots([name]), marks) if found.short == one.short]
    for left in libzfs.destroy_snapshots([found.name for found in mine]):
        work.note(f"{left.name} stays: {left.why}")
    for mark in marks:
        if mark.guid in {found.guid for found in mine}:
            libzfs.destroy_bookmark(mark.name)
