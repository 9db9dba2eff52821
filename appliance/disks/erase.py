"""Erase a disk: quick clears signatures and both ends, full writes zeros to every sector.

A full erase resolves pending sectors too: a drive remaps or clears one when written. SMART is read before and after.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator
from typing import Literal

import msgspec

from appliance import names
from appliance.disks import query
from appliance.disks.clear_labels import erase_step
from appliance.disks.exclusive_disk import ENDS, SECONDS_BETWEEN_WORDS, ExclusiveDisk, progress_text
from appliance.disks.inventory import missing_disk
from appliance.disks.smart_answer import get_section, parse_count
from appliance.disks.udev import reread_disks
from appliance.errors import Failed, Reason
from appliance.facts import vdev_state
from appliance.facts.box import Disk, Facts, Pool
from appliance.formatting import disk_label, disk_size, link_label
from appliance.layout.geometry import MIB
from appliance.message import Message, join_messages
from appliance.operation import Loss, Operation, Plan, Step, Work, always
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place

# Attributes that count bad sectors: reallocated, reported uncorrectable, pending, offline uncorrectable.
SECTOR_COUNTS = {
    5: Message("reallocated"),
    187: Message("reported unreadable"),
    197: Message("pending"),
    198: Message("unreadable offline"),
}


# By how much is erased.
REACH = {
    "full": Message("Every sector is written once. It can be stopped."),
    "quick": Message("The rest of its bytes stay until something is written over them."),
}
UNDO = {
    "full": Message("What was on it cannot be recovered."),
    "quick": Message("Do not count on getting anything back."),
}


class EraseDisk(Operation, tag="erase-disk"):
    """Erase one unused disk; the administrator types the serial number on its sticker.

    A full erase also takes a disk that is offline in its pool, to see whether it can be trusted again.
    """

    needs_proof = always

    disk: str
    how: Literal["quick", "full"] = "quick"

    def __post_init__(self) -> None:
        names.by_id(self.disk, field="disk")

    @property
    def title(self) -> str:
        name = link_label(self.disk.rsplit("/", 1)[-1])
        return Message("Erase all of {name}", name=name) if self.how == "full" else Message("Erase {name}", name=name)

    @property
    def subject(self) -> str:
        return self.disk

    def locks(self) -> tuple[str, ...]:
        return (self.disk,)

    def lasts(self) -> bool:
        return self.how == "full"

    def check(self, facts: Facts) -> Iterator[Reason]:
        disk = facts.disk(self.disk)
        if disk is None:
            yield missing_disk(self.disk)
        elif disk.blocked and (away := self.out_of_use(facts, disk)) and self.how == "full":
            yield from copy_refusals(*away)
        elif disk.blocked:
            use = disk.blocked.text
            yield Reason(
                "disk-not-erasable",
                "{disk} {use}, so it cannot be erased.",
                field="disk",
                disk=disk_label(disk),
                use=use,
            )

    def out_of_use(self, facts: Facts, disk: Disk) -> tuple[Pool, Place] | None:
        """The pool and place where the disk is offline, if only that pool forbids erasing it."""
        blocking = [use for use in disk.uses if use.blocks]
        for pool in facts.pools:
            place = vdev_tree.find_disk(pool, self.disk)
            if (
                place
                and place.vdev.state == "OFFLINE"
                and all((use.kind, use.identity) == ("pool", str(pool.guid)) for use in blocking)
            ):
                return pool, place
        return None

    def plan(self, facts: Facts) -> Plan:
        disk = facts.disk(self.disk)
        assert disk is not None  # noqa: S101  # check said so
        label = disk_label(disk)
        steps = [erase_step([disk])] if disk.content else []
        steps.append(
            Step(
                "ends",
                Message("Clear the tables at both ends of the disk"),
                Message("zeros over the first and last {count} MiB of {disk}", count=ENDS // MIB, disk=self.disk),
                self.clear_ends,
                (self.disk,),
            )
        )
        if self.how == "full":
            steps = [
                Step(
                    "before",
                    Message("Read the disk's error counts"),
                    shlex.join(counts_argv(self.disk)),
                    lambda work: self.note_counts(work, "Before"),
                    (),
                ),
                *steps,
                Step(
                    "zero",
                    Message("Write zeros over all of {label}", label=label),
                    Message("zeros over all {size} bytes of {disk}, past the cache", size=disk.size, disk=self.disk),
                    self.write_zeros,
                    (self.disk,),
                ),
                Step(
                    "after",
                    Message("Read the disk's error counts again"),
                    shlex.join(counts_argv(self.disk)),
                    lambda work: self.note_counts(work, "After"),
                    (),
                ),
            ]
        away = self.out_of_use(facts, disk) if disk.blocked else None
        held = [use.text for use in disk.uses] or [Message("has no recognised content")]
        return Plan(
            summary=join_messages([Message("{label} is empty afterwards.", label=label), REACH[self.how]]),
            steps=tuple(steps),
            identity={"operation": msgspec.to_builtins(self), "disk": disk.identity},
            losses=tuple(Loss(Message("{label} {text}", label=label, text=text), disk.size) for text in held),
            undo=UNDO[self.how],
            warnings=(offline_warning(away[0]),) if away else (),
            type_to_confirm=confirm_text(disk),
            details={
                Message("Serial number"): disk.serial or Message("not reported"),
                Message("Size"): disk_size(disk.size),
            },
        )

    def clear_ends(self, work: Work) -> None:
        with ExclusiveDisk(self.disk) as target:
            size = target.size
            for start, end in ((0, min(ENDS, size)), (max(size - ENDS, 0), size)):
                list(target.write_zeros(start, end))
        reread_disks([self.disk])
        target.require_written()
        work.note(Message("The tables at both ends are cleared"))

    def write_zeros(self, work: Work) -> None:
        began, told = time.monotonic(), 0.0
        with ExclusiveDisk(self.disk) as target:
            for done in target.write_zeros(0, target.size):
                work.stop_if_asked()
                now = time.monotonic()
                if now - told >= SECONDS_BETWEEN_WORDS or done == target.size:
                    told = now
                    work.progress(done * 100 // target.size, progress_text(done, target.size, now - began))
            for offset in target.bad:
                work.note(Message("The sector at byte {offset} could not be written", offset=offset))
        reread_disks([self.disk])
        target.require_written()
        work.note(Message("Every sector was written"))

    def note_counts(self, work: Work, when: str) -> None:
        work.note(Message("{when}: {sector_counts_text}", when=when, sector_counts_text=sector_counts_text(self.disk)))

    def probe(self, step: str, facts: Facts) -> bool:
        # Nothing shows whether every sector was written, so an interrupted full erase is never taken as done.
        disk = facts.disk(self.disk)
        return self.how == "quick" and disk is not None and disk.free

    def recovery_hint(self, step: str, facts: Facts) -> str:
        disk = facts.disk(self.disk)
        if disk is None:
            return Message("The disk does not answer any more. Look at its cables, then erase it again or take it out.")
        return Message(
            "{disk} is partly erased. Nothing on it can be relied on: plan it again to erase it from the beginning.",
            disk=disk_label(disk),
        )


def copy_refusals(pool: Pool, place: Place) -> Iterator[Reason]:
    """Reasons to keep an offline disk: it may hold the last good copy of something."""
    beside = [device for device in place.group.devices() if device.guid != place.vdev.guid]
    if pool.state not in vdev_state.WORKING:
        yield Reason(
            "pool-not-working",
            "{pool} does not work without this disk. Bring the disk online again.",
            field="disk",
            pool=pool.name,
        )
    elif pool.rebuilding:
        yield Reason(
            "pool-rebuilding", "{pool} is rebuilding. Wait until the rebuild has ended.", field="disk", pool=pool.name
        )
    elif pool.errors:
        yield Reason(
            "pool-damaged",
            "{pool} has damaged files, and this disk may hold good copies of them. Bring the disk online "
            "again, then scrub"
            " the pool.",
            field="disk",
            pool=pool.name,
        )
    elif any(device.read_errors or device.checksum_errors for device in beside):
        yield Reason(
            "pool-errors",
            "Other disks of {pool} made errors too, and this disk may hold the last good copy. Bring it "
            "online again, scrub"
            " the pool, then clear the error counts.",
            field="disk",
            pool=pool.name,
        )


def offline_warning(pool: Pool) -> str:
    left = pool.failures_left
    survives = Message("survives no failed disk")
    if left:
        disks = Message("disk") if left == 1 else Message("disks")
        survives = Message("survives {left} more failed {what}", left=left, what=disks)
    return Message(
        "It is offline in {pool}. Afterwards it can only return as a new disk, with a rebuild. Until then "
        "{pool} {survives}.",
        pool=pool.name,
        survives=survives,
    )


def confirm_text(disk: Disk) -> str:
    """The serial number if it can be typed, else the kernel name."""
    return disk.serial if re.fullmatch(r"[!-~]+(?: [!-~]+)*", disk.serial) else disk.name


def counts_argv(path: str) -> list[str]:
    return ["smartctl", "--json", "-A", "--", path]


def sector_counts_text(path: str) -> str:
    """The drive's counts of bad sectors in words."""
    try:
        result = query.query_disk(path, counts_argv(path), timeout=60)
        answer = json.loads(result.stdout)
    except (Failed, ValueError):
        return Message("the disk reports no counts")
    return join_messages([*counts_of(answer)], "; ") or Message("the disk reports no counts")


def counts_of(answer: object) -> Iterator[str]:
    """From ``smartctl --json -A``: ATA's counts of bad sectors, or NVMe's media errors."""
    table = get_section(answer, "ata_smart_attributes").get("table")
    for row in table if isinstance(table, list) else ():
        if isinstance(row, dict) and (name := SECTOR_COUNTS.get(parse_count(row.get("id")) or 0)):
            raw = row.get("raw")
            value = parse_count(raw.get("value")) if isinstance(raw, dict) else None
            yield Message("{kind} sectors: {count}", kind=name, count=Message("unknown") if value is None else value)
    errors = get_section(answer, "nvme_smart_health_information_log").get("media_errors")
    if parse_count(errors) is not None:
        yield Message("media errors: {count}", count=errors)
