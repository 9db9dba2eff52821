"""The way of a failing disk: evidence, out of use, erased with its values before and after, then back or replaced.

Where it stands is read from the facts, not remembered, so that it is true also for what was done elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from appliance.facts import Pool, Vdev
from appliance.zfs import tree
from appliance.zfs.replace import REPLACEABLE
from web.alerts.disk_views import NAMES
from web.alerts.models import Alert, DiskDay
from web.inventory import present
from web.inventory.models import DiskRow
from web.jobs.models import Job

LOOKED_AT = ("pending", "uncorrectable", "reallocated", "reported", "media_errors", "grown_defects", "uncorrected")


@dataclass(frozen=True)
class Step:
    """``state`` as its mark shows: healthy (done), working (the next), empty (later)."""

    title: str
    text: str
    state: str
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Path:
    bay: str
    pool: str
    safe: str
    steps: tuple[Step, ...]


def of(alert: Alert) -> Path | None:
    """The way for the disk of this alert; None where the disk is not in the box any more."""
    box = present.box()
    bay = present.names_of(box.bays).get(alert.subject)
    row = DiskRow.objects.filter(key=alert.subject).first()
    if bay is None or row is None:
        return None
    member = member_of(box, alert.subject)
    wiped = last_wipe(bay.disk.path, alert.first_seen)
    return Path(bay.label, member[0].name if member else "", survives(member), tuple(steps(alert, row, member, wiped)))


def member_of(box: present.Box, key: str) -> tuple[Pool, Vdev] | None:
    for card in box.cards:
        for place in tree.places(card.pool):
            if place.leaf and place.role in REPLACEABLE and present.link_of(place.vdev) == key:
                return card.pool, place.vdev
    return None


def survives(member: tuple[Pool, Vdev] | None) -> str:
    if member is None:
        return "It belongs to no pool, so no file depends on it."
    pool = member[0]
    left = pool.failures_left
    if left:
        return f"{pool.name} survives {left} more failed {'disk' if left == 1 else 'disks'}, so there is time to look closely."
    return f"{pool.name} survives no failed disk at the moment. Do not take this one out before its replacement stands beside it."


def last_wipe(path: str, since: datetime) -> datetime | None:
    """When every sector of it was last overwritten since the alert began."""
    jobs = Job.objects.filter(kind="WipeDisk", state=Job.State.DONE, created__gte=since).only("operation", "finished")
    return next((job.finished for job in jobs if f'"{path}"' in job.operation and '"full"' in job.operation), None)


def steps(alert: Alert, row: DiskRow, member: tuple[Pool, Vdev] | None, wiped: datetime | None) -> Iterator[Step]:
    over = alert.state == Alert.State.CLEARED
    health = reverse("disk_health", args=[row.key])
    out = member is None or member[1].state in {"OFFLINE", "REMOVED", "FAULTED", "UNAVAIL"}
    evidence = (
        " ".join(reason[1] for reason in row.reasons if reason[0] in {"failing", "watch"})
        or "Nothing is counted against it now."
    )
    yield Step("Look at the evidence", evidence, "healthy" if out or wiped or over else "working", (("See figures and graphs", health),))  # fmt: skip
    take: tuple[tuple[str, str], ...] = ()
    if member and not out:
        pool, device = member
        take = (
            ("Take it offline to test it", reverse("vdev_act", args=[pool.guid, device.guid, "offline"])),
            ("Replace it now", f"{reverse('replace_disk', args=[pool.guid])}?vdev={device.guid}"),
        )
    yield Step("Take it out of use", "ZFS goes on with the other disks. Files stay available.", "healthy" if out or over else "working", take)  # fmt: skip
    erase = (("Erase every sector", f"{reverse('wipe_disk', args=[row.key])}?how=full"),) if out and not wiped and not over else ()  # fmt: skip
    told = "Writing every sector lets the disk replace what it cannot read. What it counted before and after says whether it can be trusted."
    yield Step("Erase it fully", f"{told} {before_and_after(row, alert)}".strip(), "healthy" if wiped or over else ("working" if out else "empty"), erase)  # fmt: skip
    back: tuple[tuple[str, str], ...] = ()
    if wiped and not over:
        verdict = "It counts nothing any more. It can go back into its pool." if row.verdict == "healthy" else "It still counts faults. Send it back under warranty, or throw it away."  # fmt: skip
        back = (("A report for the warranty", f"{health}?report=1"),)
        if member:
            back = (("Replace it in the pool", f"{reverse('replace_disk', args=[member[0].guid])}?vdev={member[1].guid}"), *back)  # fmt: skip
    else:
        verdict = "The erased disk goes back into the pool as if it were new, or another takes its place. The alert clears by itself."
    yield Step("Back into the pool, or replace it", verdict, "healthy" if over else ("working" if wiped else "empty"), back)  # fmt: skip


def before_and_after(row: DiskRow, alert: Alert) -> str:
    """``sectors that cannot be read: 312 at most, 0 now``"""
    counts = row.reading.get("counts", {})
    days = DiskDay.objects.filter(disk=row.key, day__gte=alert.first_seen.date())
    most: dict[str, int] = {}
    for day in days:
        for name, value in day.values.items():
            most[name] = max(most.get(name, 0), value[1])
    found = [
        f"{NAMES.get(name, name)}: {most[name]} at most, {counts.get(name, 0)} now"
        for name in LOOKED_AT
        if most.get(name)
    ]
    return "; ".join(found) + "." if found else ""
