"""Alert rules about pools, their devices and their space."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.alerts.fault import HYSTERESIS, TOLD_FOR, AlertInput, Fault, Space, judge_each
from appliance.facts import vdev_state
from appliance.facts.box import Pool
from appliance.formatting import names_text, size_text
from appliance.message import Message, join_messages
from appliance.pools import fullness, health
from appliance.zfs import vdev_tree

SUMS = (Message("read"), Message("write"), Message("checksum"))
FULL_KINDS = ((fullness.CRITICAL, "pool.full96"), (fullness.WARNING, "pool.full90"), (fullness.NOTICE, "pool.full80"))
ROLES = {"spare": Message("spare"), "cache": Message("cache")}
STALLS = 5  # requests of more than 30 seconds: a disk that spins up takes less
SOON, SOON_STILL = 14, 21  # days until it is nearly full: when that is an alert, and until when it stays one


def pool_faults(seen: AlertInput) -> Iterator[Fault]:
    def of_pool(pool: Pool) -> Iterator[Fault]:
        guid, link = str(pool.guid), f"/pools/{pool.guid}/"
        broken = [one for one in pool.devices() if one.state in vdev_state.LOST and one.role not in {"spare", "cache"}]
        away = names_text([vdev_state.say(seen.names(one), one.state) for one in broken], 6, "; ")
        headline = health.of_pool(pool, seen.names).headline  # as the pool's page says it
        if pool.state in {"SUSPENDED", *vdev_state.UNUSABLE}:
            yield Fault("pool.stopped", guid, headline, away, link)
        elif broken and all(one.state == "OFFLINE" for one in broken):
            yield Fault(
                "pool.offline",
                guid,
                Message("{pool} runs without a disk that was taken offline.", pool=pool.name),
                away,
                link,
                len(broken),
            )
        elif broken and pool.failures_left == 0:
            yield Fault("pool.no-redundancy", guid, headline, away, link, len(broken))
        elif broken or health.is_degraded_by_itself(pool):
            yield Fault("pool.degraded", guid, headline, away, link, len(broken))
        helpers = [one for one in pool.devices() if one.state in vdev_state.LOST and one.role in {"spare", "cache"}]
        for one in helpers:
            yield Fault(
                "pool.helper",
                f"{guid}/{one.guid}",
                Message(
                    "{pool}: the {role} disk {names} does not work.",
                    pool=pool.name,
                    role=ROLES[one.role],
                    names=seen.names(one),
                ),
                "",
                link,
            )
        if pool.errors:
            count = Message("1 place") if pool.errors == 1 else Message("{count} places", count=pool.errors)
            yield Fault(
                "pool.damaged",
                guid,
                Message("{pool} has damaged files: {count}.", pool=pool.name, count=count),
                "",
                f"{link}reports/",
                pool.errors,
            )

    yield from judge_each(seen.pools, of_pool)


def device_faults(seen: AlertInput) -> Iterator[Fault]:
    """One fault for each device with errors. A device that ZFS has faulted for them is part of
    the pool's fault instead."""
    failing = {disk.key for disk in seen.disks if disk.state == "failing"}

    def of_pool(pool: Pool) -> Iterator[Fault]:
        for device in pool.devices():
            subject = f"{pool.guid}/{device.guid}"
            if device.state in vdev_state.LOST and ("pool.errors", subject) not in seen.open:
                continue
            advice = (
                Message(" By its own figures it is failing: replace it.")
                if vdev_tree.link_of(device) in failing
                else ""
            )
            counts = (device.read_errors, device.write_errors, device.checksum_errors)
            if any(counts):
                told = join_messages(
                    [
                        Message("{count} {what}", count=count, what=what)
                        for count, what in zip(counts, SUMS, strict=True)
                        if count
                    ],
                    ", ",
                )
                yield Fault(
                    "pool.errors",
                    subject,
                    Message("{pool}: {names} made errors.", pool=pool.name, names=seen.names(device)),
                    Message("Counted: {told}.{advice}", told=told, advice=advice),
                    f"/pools/{pool.guid}/",
                    sum(counts),
                )

            if device.slow_ios >= STALLS:
                yield Fault(
                    "pool.stalls",
                    subject,
                    Message("{pool}: {names} was very slow to answer.", pool=pool.name, names=seen.names(device)),
                    Message(
                        "Counted: {slow_ios} requests of more than 30 seconds.{advice}",
                        slow_ios=device.slow_ios,
                        advice=advice,
                    ),
                    f"/pools/{pool.guid}/",
                    device.slow_ios,
                )

    yield from judge_each(seen.pools, of_pool)


def errors_left(pool: str, kind: str, errors: int) -> str:
    """With how many errors a scrub or rebuild ended."""
    if kind == "scrub":
        if errors == 1:
            return Message("{pool}: the scrub ended with 1 error.", pool=pool)
        return Message("{pool}: the scrub ended with {errors} errors.", pool=pool, errors=errors)
    if errors == 1:
        return Message("{pool}: the rebuild ended with 1 error.", pool=pool)
    return Message("{pool}: the rebuild ended with {errors} errors.", pool=pool, errors=errors)


def scan_faults(seen: AlertInput) -> Iterator[Fault]:
    """The result of the last scrub or rebuild while ZFS reports it.
    Errors stay until a run ends without any, however old they are; a good result is reported for two days."""

    def of_pool(pool: Pool) -> Iterator[Fault]:
        scan, link = pool.scan, f"/pools/{pool.guid}/reports/"
        well = (
            scan
            and scan.ended
            and not health.is_unwell(pool)
            and health.SETTLED <= abs(seen.now - scan.ended) < TOLD_FOR
        )
        if scan and scan.state == "finished" and scan.ended and (scan.errors or well):
            subject = f"{pool.guid}/{scan.ended:%Y%m%d%H%M%S}"
            if scan.errors:
                yield Fault(
                    "scan.errors", subject, errors_left(pool.name, scan.kind, scan.errors), "", link, scan.errors
                )
            elif scan.kind == "scrub" and scan.repaired:
                yield Fault(
                    "pool.repaired",
                    subject,
                    Message("{pool} repaired itself.", pool=pool.name),
                    Message("The scrub rewrote {repaired}; no errors are left.", repaired=size_text(scan.repaired)),
                    link,
                )
            elif scan.kind == "resilver" and scan.repaired:
                yield Fault(
                    "pool.rebuilt",
                    subject,
                    Message("{pool} was rebuilt.", pool=pool.name),
                    Message("{repaired} were written; no errors are left.", repaired=size_text(scan.repaired)),
                    link,
                )

    yield from seen.overdue
    yield from judge_each(seen.pools, of_pool)


def space_faults(seen: AlertInput) -> Iterator[Fault]:
    def of_one(space: Space) -> Iterator[Fault]:
        subject = str(space.guid)
        within = SOON_STILL if ("pool.filling", subject) in seen.open else SOON
        fast = space.percent < fullness.WARNING and space.days is not None and space.days <= within
        room = Message("{free} are free.", free=size_text(space.free))
        for mark, kind in FULL_KINDS:
            page = f"/pools/{space.guid}/growth/" if mark == fullness.NOTICE else f"/pools/{space.guid}/"
            if space.percent >= mark or ((kind, subject) in seen.open and space.percent >= mark - HYSTERESIS):
                said = [fullness.classify(space.percent).meaning, space.received]
                yield Fault(
                    kind,
                    subject,
                    Message("{pool} is {percent} % full.", pool=space.pool, percent=space.percent),
                    join_messages(said if fast else [room, *said, space.forecast_text]),
                    page,
                )
                break
        if fast:
            yield Fault(
                "pool.filling",
                subject,
                Message("{pool} fills up fast.", pool=space.pool),
                join_messages([space.forecast_text, room]),
                f"/pools/{space.guid}/growth/",
            )

    yield from judge_each(seen.spaces, of_one)


def missing_pool_faults(seen: AlertInput) -> Iterator[Fault]:
    for guid, name in seen.missing:
        yield Fault("pool.missing", guid, Message("{name} is missing.", name=name), "", "/pools/import/")
