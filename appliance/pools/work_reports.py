"""How long work of the kernel on a pool ended, and what that means. Pure; the same words everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from appliance.facts.box import LongWork, Pool
from appliance.formatting import link_label, size_text
from appliance.pools.progress import KNOWN_BY_THEIR_END, unix_time, work_key

ENDED = {
    "scrub": "Check (scrub)",
    "resilver": "Rebuilding",
    "expand": "Growing by a disk",
    "remove": "Emptying a device",
    "trim": "Trimming",
    "initialize": "Writing through free space",
}
# How ZFS names what is damaged of its own, among the damaged files (zpool_obj_to_path).
OWN_RECORDS = "<metadata>:"


def report_key(pool: Pool, work: LongWork) -> str:
    """The name of its one report."""
    if work.kind in KNOWN_BY_THEIR_END:
        return f"{pool.guid}-{work.kind}-{unix_time(work.ended)}"
    return work_key(pool, work)


@dataclass(frozen=True)
class Wear:
    """Errors that ZFS counted on one disk when the report was written."""

    device: str
    read: int
    write: int
    checksum: int

    @property
    def disk(self) -> str:
        """Its model and serial number, as on its sticker, where its name tells them."""
        return link_label(self.device)


@dataclass(frozen=True)
class Report:
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
    wear: tuple[Wear, ...] = field(default=())
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
            return "damage left"
        if self.outcome == "stopped":
            return "stopped"
        return "repaired" if self.repaired and self.kind == "scrub" else "clean" if self.kind == "scrub" else "done"

    @property
    def sentence(self) -> str:
        """What came of it, and what that means."""
        said = [self.describe_result()]
        if self.errors or self.damaged:
            said.append(self.describe_harm())
        return " ".join(said)

    def describe_result(self) -> str:
        what = size_text(self.repaired)
        if self.kind == "scrub":
            if self.outcome == "stopped":
                before = f" {what} was repaired until then." if self.repaired else ""
                return f"Stopped before its end. What it had not reached is unchecked.{before}"
            if self.repaired:
                kept = "Nothing was lost." if not (self.errors or self.damaged) else ""
                return f"{what} was damaged on a disk and was rewritten from the others. {kept}".strip()
            return "Everything was read." if self.errors or self.damaged else "Everything was read and nothing was wrong."  # fmt: skip
        if self.kind == "resilver":
            if self.outcome == "stopped":
                return "It ended before everything was rebuilt."
            return f"{what} was written, and the disk is part of the pool again." if self.repaired else "The disk was up to date."  # fmt: skip
        if self.outcome == "stopped":
            return "Stopped before its end."
        return {
            "expand": "The new disk is in use; the files written from now on use all disks.",
            "remove": "Its data lies on the other devices now.",
            "trim": "The disks know which of their blocks are free.",
            "initialize": "All free space has been written once.",
        }.get(self.kind, "Done.")

    def describe_harm(self) -> str:
        if self.kind in KNOWN_BY_THEIR_END:
            return f"{count_text(self.errors, 'request')} failed."
        own = sum(name.startswith(OWN_RECORDS) for name in self.files)
        said = []
        if self.damaged > own:
            said.append(f"{count_text(self.damaged - own, 'file')} could not be repaired and should be restored from a snapshot or another copy.")  # fmt: skip
        if own:
            said.append(f"{count_text(own, 'record')} of the pool itself could not be repaired either. If the next check finds them again, copy everything to another pool and create this one again.")  # fmt: skip
        return " ".join(said) or f"{count_text(self.errors, 'error')} could not be repaired."


def count_text(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def make_report(work: LongWork, *, began: datetime | None, files: tuple[str, ...], damaged: int, wear: tuple[Wear, ...]) -> Report:  # fmt: skip
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
