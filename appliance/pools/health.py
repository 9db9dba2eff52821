"""What a pool's state means to its owner: one state word, a headline, what it means, what to do. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec.structs import replace

from appliance.facts import vdev_state
from appliance.facts.box import Pool, Vdev
from appliance.formatting import capitalize_opening, names_text
from appliance.message import Message, join_messages
from appliance.pools import fullness, work_reports
from appliance.zfs import vdev_tree

Health = Literal["healthy", "working", "notice", "attention", "failed", "asleep", "empty", "unknown"]
LEVEL_STATES: dict[str, Health] = {"critical": "failed", "warning": "attention", "notice": "notice", "": "healthy"}


class PoolHealth(msgspec.Struct, frozen=True):
    """``state`` chooses icon and colour; the rest is said aloud."""

    state: Health
    headline: str
    meaning: str = ""
    advice: str = ""
    word: str = ""  # for its card, where the state alone would not say it


# When a disk is pulled or dies, errors are counted first and its loss is noticed up to half a minute later.
# So nothing calm is said of a pool until it was read this long after the last sign of trouble.
SETTLED = timedelta(seconds=60)
CLOCK_WAS_AHEAD = timedelta(hours=1)


def is_settled(read: datetime | None, *signs: datetime | None) -> bool:
    """Whether what was read at that time may be called well, by the times of the last signs of trouble."""
    known = [sign for sign in signs if sign is not None]
    if not known:
        return True
    return read is not None and not any(-CLOCK_WAS_AHEAD < read - sign < SETTLED for sign in known)


def shows_trouble(pool: Pool, before: Pool | None) -> bool:
    """Whether a reading shows something new that is wrong, or that something has just ceased to be wrong."""
    if is_unwell(pool) or (before is not None and is_unwell(before)):
        return True
    return error_counts(pool) != (error_counts(before) if before else {}) and bool(error_counts(pool))


def is_unwell(pool: Pool) -> bool:
    return pool.state != "ONLINE" or any(device.state in vdev_state.LOST for device in pool.devices())


def error_counts(pool: Pool) -> dict[int, tuple[int, int, int]]:
    """By guid, of the devices that count any."""
    found = {one.guid: (one.read_errors, one.write_errors, one.checksum_errors) for one in pool.devices()}
    return {guid: counts for guid, counts in found.items() if any(counts)}


def of_space(name: str, used: int, total: int) -> PoolHealth | None:
    """What is to be said of the space for files, in bytes; None as long as there is enough of it."""
    percent = fullness.percent_used(used, total)
    found = fullness.classify(percent)
    if not found.level:
        return None
    meaning = Message("{percent} % of its space is used. {meaning}", percent=percent, meaning=found.meaning)
    return PoolHealth(
        LEVEL_STATES[found.level],
        Message("{name} is {found_word}.", name=name, found_word=found.word),
        meaning,
        fullness.ADVICE,
        found.word,
    )


def survives_text(pool: Pool) -> str:
    left = pool.failures_left
    if left == 0:
        return Message("one more failed disk would lose data")
    return (
        Message("it survives one more failed disk")
        if left == 1
        else Message("it survives {left} more failed disks", left=left)
    )


def safety_text(left: int) -> str:
    """What a pool without any fault survives."""
    if not left:
        return Message("One failed disk would lose everything in it. Keep a copy elsewhere.")
    if left == 1:
        return Message("It survives one more failed disk.")
    return Message("It survives {left} more failed disks.", left=left)


def being_replaced(pool: Pool) -> set[int]:
    """The guids of the devices whose place a new disk is taking."""
    return {
        place.vdev.guid
        for place in vdev_tree.list_places(pool)
        if place.parent and place.parent.kind == "replacing" and place.parent.children[0].guid == place.vdev.guid
    }


def stale_degraded_after_removal(pool: Pool) -> bool:
    """Whether ZFS calls the pool degraded only for a disk of a group that was emptied while that disk was away.

    Seen with 2.3.9: the group that has left keeps its last state until the pool's devices are opened again, as a scrub
    does; ``zpool clear`` does not.
    """
    emptied = any(work.kind == "remove" and work.state == "finished" for work in pool.work)
    well = all(place.vdev.state in vdev_state.HEALTHY for place in vdev_tree.list_places(pool))
    return pool.state == "DEGRADED" and emptied and well


def is_degraded_by_itself(pool: Pool) -> bool:
    """Whether ZFS calls a pool degraded for something that no fault of a disk names, such as a
    state that is unknown here."""
    return pool.state == "DEGRADED" and not error_counts(pool) and not stale_degraded_after_removal(pool)


def of_pool(
    pool: Pool, label: Callable[[Vdev], str], *, used: int = 0, total: int = 0, settled: bool = True
) -> PoolHealth:
    """The verdict on a pool. ``label`` gives a device's name as people know it; ``used`` and ``total`` are the bytes
    that files take and could take; ``settled`` as ``is_settled`` says."""
    space = of_space(pool.name, used, total)
    full = space if space and space.state == "failed" else None
    filling = space if space and space.state == "attention" else None
    found = of_disks(pool, label) or full or of_errors(pool, label, settled=settled) or filling or of_work(pool)
    if found:
        return found
    if not settled:
        return PoolHealth(
            "attention",
            Message("{pool} reported a problem.", pool=pool.name),
            Message(
                "A disk of it made an error or changed its state a moment ago. Larder is checking whether "
                "every disk still answers."
            ),
            Message("Wait a minute."),
            Message("checking"),
        )
    safety = safety_text(pool.failures_left)
    if space:
        return replace(space, meaning=join_messages([space.meaning, safety]))
    return PoolHealth("healthy", Message("{pool} is healthy.", pool=pool.name), safety)


def of_disks(pool: Pool, label: Callable[[Vdev], str]) -> PoolHealth | None:
    """The verdict on a pool that lacks disks or has damaged files."""
    broken = [device for device in pool.devices() if device.state in vdev_state.LOST]
    said = capitalize_opening(names_text([vdev_state.say(label(device), device.state) for device in broken], 3, "; "))
    if pool.state == "SUSPENDED":
        held = Message("Too many of its disks do not answer, so ZFS holds every read and write.")
        return PoolHealth(
            "failed",
            Message("{pool} has stopped.", pool=pool.name),
            join_messages([held, Message("{said}.", said=said)]) if said else held,
            Message(
                "Bring the disks back (cables, power). The page of the pool then says how to continue. Do "
                "not pull more disks, and do not switch the box off: what was being written waits in its "
                "memory."
            ),
        )
    if pool.state in vdev_state.UNUSABLE:
        return PoolHealth(
            "failed",
            Message("{pool} cannot be used.", pool=pool.name),
            Message("Too few of its disks answer. {said}.", said=said),
            Message("Put missing disks back. Nothing is erased as long as you do not make a new pool on them."),
        )
    if stale_degraded_after_removal(pool):
        return PoolHealth(
            "attention",
            Message("{pool} is complete.", pool=pool.name),
            Message("A disk that was away has left the pool for good, and ZFS still counts it."),
            Message("Scrub the pool once: ZFS then looks at all its disks again."),
            Message("to be scrubbed"),
        )
    if pool.state == "DEGRADED" or broken:
        return of_degraded(pool, broken, said)
    if pool.errors:
        return PoolHealth(
            "failed",
            Message("{pool} has damaged files.", pool=pool.name),
            work_reports.left_text(pool.errors),
            Message("Restore the damaged files from a snapshot or another copy."),
        )
    return None


def of_degraded(pool: Pool, broken: list[Vdev], said: str) -> PoolHealth:
    """The verdict on a pool that works without some of its disks. ``said``: a sentence on these."""
    if pool.rebuilding and pool.scan:
        percent = pool.scan.percent
        doing = Message("It is rebuilding, {percent} % done; files stay available", percent=percent)
        said = join_messages([said, doing], ". ")
    left = Message("it survives only one more failed disk") if pool.failures_left == 1 else survives_text(pool)
    replaced = being_replaced(pool) if pool.rebuilding else set()
    waiting = [device for device in broken if device.guid not in replaced]
    advice = Message("Put the disk back or replace it soon.") if waiting or not broken else ""
    state = Message("is degraded") if pool.state == "DEGRADED" else Message("needs attention")
    return PoolHealth(
        "attention",
        Message("{pool} {state}: {left}.", pool=pool.name, state=state, left=left),
        Message("{said}.", said=said) if said else pool.status,
        advice,
    )


def of_errors(pool: Pool, label: Callable[[Vdev], str], *, settled: bool) -> PoolHealth | None:
    """The verdict on a pool that has repaired errors."""
    worn = [device for device in pool.devices() if device.read_errors or device.write_errors or device.checksum_errors]
    if not worn:
        return None
    count = sum(device.read_errors + device.write_errors + device.checksum_errors for device in worn)
    named = names_text([label(device) for device in worn], 3)
    errors = (
        Message("1 error on {label}", label=named)
        if count == 1
        else Message("{errors} errors on {label}", errors=count, label=named)
    )
    if not settled:
        return PoolHealth(
            "attention",
            Message("{pool} reported errors.", pool=pool.name),
            Message("{errors}. Larder is checking whether every disk still answers.", errors=errors),
            Message("Wait a minute."),
            Message("checking"),
        )
    return PoolHealth(
        "attention",
        Message("{pool} repaired itself.", pool=pool.name),
        Message("Repaired from the other disks: {errors}. Nothing was lost.", errors=errors),
        Message("If it happens again, that disk is wearing out."),
    )


def of_work(pool: Pool) -> PoolHealth | None:
    """The verdict on a pool that is rebuilt or scrubbed."""
    if not pool.scan or pool.scan.state != "scanning":
        return None
    what = Message("is rebuilding") if pool.scan.kind == "resilver" else Message("is being scrubbed")
    return PoolHealth("working", Message("{pool} {what}.", pool=pool.name, what=what), Message("Files stay available."))


def of_device(device: Vdev) -> Health:
    """A device's state as one of the states that pages know."""
    level = vdev_state.describe(device.state).level
    has_errors = device.read_errors or device.write_errors or device.checksum_errors
    return "attention" if level == "healthy" and has_errors else level
