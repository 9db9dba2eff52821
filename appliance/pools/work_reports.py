"""How long work of the kernel on a pool ended, and what that means. Pure; the same words everywhere."""

from __future__ import annotations

from datetime import datetime

import msgspec

from appliance.facts.box import LongWork, Pool
from appliance.formatting import link_label, number_text, size_text
from appliance.message import Message, join_messages
from appliance.pools.progress import KNOWN_BY_THEIR_END, unix_time, work_key

ENDED = {
    "scrub": Message("Scrub"),
    "resilver": Message("Rebuilding"),
    "expand": Message("Growing by a disk"),
    "remove": Message("Emptying a device"),
    "trim": Message("Trimming"),
    "initialize": Message("Writing through free space"),
}
# How ZFS names what is damaged of its own, among the damaged files (zpool_obj_to_path).
OWN_RECORDS = "<metadata>:"


def report_key(pool: Pool, work: LongWork) -> str:
    """The name of its one report."""
    if work.kind in KNOWN_BY_THEIR_END:
        return f"{pool.guid}-{work.kind}-{unix_time(work.ended)}"
    return work_key(pool, work)


class Wear(msgspec.Struct, frozen=True):
    """Errors that ZFS counted on one disk when the report was written."""

    device: str
    read: int
    write: int
    checksum: int

    @property
    def disk(self) -> str:
        """Its model and serial number, as on its sticker, where its name tells them."""
        return link_label(self.device)


class Report(msgspec.Struct, frozen=True):
    """How long work ended. ``errors`` could not be repaired; ``damaged`` counts files, ``files`` names the first."""

    kind: str
    outcome: str  # finished, stopped
    started: datetime | None
    ended: datetime | None
    looked: int = 0
    repaired: int = 0
    errors: int = 0
    damaged: int = 0
    files: tuple[str, ...] = ()
    wear: tuple[Wear, ...] = ()
    subject: str = ""

    @property
    def seconds(self) -> int | None:
        """How long it took; None where that is not known or the clock was set meanwhile."""
        if self.started is None or self.ended is None or self.ended < self.started:
            return None
        return int((self.ended - self.started).total_seconds())

    @property
    def title(self) -> str:
        return ENDED.get(self.kind, self.kind.capitalize())

    @property
    def state(self) -> str:
        """The state that its mark shows."""
        if self.errors or self.damaged:
            return "failed"
        if self.outcome == "stopped":
            return "empty"
        return "repaired" if self.repaired and self.kind == "scrub" else "healthy"

    @property
    def word(self) -> str:
        if self.errors or self.damaged:
            return Message("damage left")
        if self.outcome == "stopped":
            return Message("stopped")
        if self.kind == "scrub":
            return Message("repaired") if self.repaired else Message("clean")
        return Message("done")

    @property
    def sentence(self) -> str:
        """What came of it, and what that means."""
        said = [self.describe_result()]
        if self.errors or self.damaged:
            said.append(self.describe_harm())
        return join_messages(said)

    def describe_result(self) -> str:
        what = size_text(self.repaired)
        if self.kind == "scrub":
            if self.outcome == "stopped":
                before = Message("{what} was repaired by then.", what=what) if self.repaired else ""
                return join_messages(
                    [Message("Stopped before it finished. What it had not reached was not checked."), before]
                )
            if self.repaired:
                kept = Message("Nothing was lost.") if not (self.errors or self.damaged) else ""
                rewritten = Message("{what} was damaged on a disk and was rewritten from the others.", what=what)
                return join_messages([rewritten, kept])
            if self.errors or self.damaged:
                return Message("Everything was read.")
            return Message("Everything was read and nothing was wrong.")
        if self.kind == "resilver":
            if self.outcome == "stopped":
                return Message("It ended before everything was rebuilt.")
            if not self.repaired:
                return Message("The disk was up to date.")
            return Message("{what} was written, and the disk is part of the pool again.", what=what)
        if self.outcome == "stopped":
            return Message("Stopped before it finished.")
        return {
            "expand": Message("The new disk is in use; the files written from now on use all disks."),
            "remove": Message("Its data is on the other devices now."),
            "trim": Message("The disks know which of their blocks are free."),
            "initialize": Message("All free space has been written once."),
        }.get(self.kind, Message("Done."))

    def describe_harm(self) -> str:
        if self.kind in KNOWN_BY_THEIR_END:
            if self.errors == 1:
                return Message("1 request failed.")
            return Message("{count} requests failed.", count=number_text(f"{self.errors:,}"))
        own = sum(name.startswith(OWN_RECORDS) for name in self.files)
        return join_messages([damaged_text(self.damaged - own), own_text(own)]) or left_text(self.errors)


def damaged_text(count: int) -> str:
    """What to do about so many files; nothing for none."""
    if count == 1:
        return Message("1 file could not be repaired and should be restored from a snapshot or another copy.")
    return (
        Message(
            "{count} files could not be repaired and should be restored from a snapshot or another copy.",
            count=number_text(f"{count:,}"),
        )
        if count > 0
        else ""
    )


def own_text(count: int) -> str:
    """What to do about so many damaged records of ZFS's own; nothing for none."""
    if count == 1:
        return Message(
            "1 record of the pool itself could not be repaired either. If the next scrub finds it again, "
            "copy everything to another pool and create this one again."
        )
    return (
        Message(
            "{count} records of the pool itself could not be repaired either. If the next scrub finds them "
            "again, copy everything to another pool and create this one again.",
            count=number_text(f"{count:,}"),
        )
        if count
        else ""
    )


def left_text(errors: int) -> str:
    if errors == 1:
        return Message("1 error could not be repaired.")
    return Message("{count} errors could not be repaired.", count=number_text(f"{errors:,}"))


def make_report(
    work: LongWork, *, began: datetime | None, files: tuple[str, ...], damaged: int, wear: tuple[Wear, ...]
) -> Report:
    """The report on work that has ended. ``began`` is what was seen of its beginning where ZFS keeps none."""
    return Report(
        kind=work.kind,
        outcome=work.state,
        started=work.started or began,
        ended=work.ended,
        looked=work.done,
        repaired=work.repaired,
        errors=work.errors,
        damaged=damaged,
        files=files,
        wear=wear,
        subject=work.subject,
    )


def wear_of(pool: Pool) -> tuple[Wear, ...]:
    """The disks with errors counted."""
    return tuple(
        Wear(device.name, device.read_errors, device.write_errors, device.checksum_errors)
        for device in pool.devices()
        if device.read_errors or device.write_errors or device.checksum_errors
    )
