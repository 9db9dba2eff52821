"""The guide for a failing disk: evidence, taking it offline, erasing it, then putting it back or replacing it.

The current step follows from the facts and is not stored, so it is right also after changes made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from appliance.facts import vdev_state
from appliance.facts.box import Pool, Vdev
from appliance.pools.vdevs.replace import REPLACEABLE
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import link_of
from web.alerts.models import Alert, DiskDay
from web.disks.graphs import NAMES
from web.inventory.bays import bays_by_key
from web.inventory.box import Box, read_box
from web.inventory.models import DiskRow, Source
from web.jobs.models import Job
from web.translation import text_of

LOOKED_AT = ("pending", "uncorrectable", "reallocated", "reported", "media_errors", "grown_defects", "uncorrected")
Links = tuple[tuple[str, str], ...]


class GuideStep(msgspec.Struct, frozen=True):
    """``state`` as its mark shows: healthy (done), working (the next), empty (later)."""

    title: str
    text: str
    state: str
    links: Links = ()


class Path(msgspec.Struct, frozen=True):
    bay: str
    pool: str
    safe: str
    steps: tuple[GuideStep, ...]


class Standing(msgspec.Struct, frozen=True):
    """The state of the disk. ``asked``: it was read after it was erased."""

    row: DiskRow
    member: tuple[Pool, Vdev] | None
    over: bool
    wiped: datetime | None
    asked: bool
    compared: str

    @property
    def is_working(self) -> bool:
        return self.member is not None and self.member[1].state in vdev_state.WORKING

    @property
    def is_out(self) -> bool:
        return not self.is_working

    def is_done(self, *also: bool) -> bool:
        return (self.over and self.is_working) or any(also)

    def action_link(self, what: str) -> str:
        assert self.member is not None  # noqa: S101  # asked only for a disk that has a place
        return reverse("vdev_act", args=[self.member[0].guid, self.member[1].guid, what])

    @property
    def replace_link(self) -> str:
        assert self.member is not None  # noqa: S101  # as above
        return f"{reverse('replace_disk', args=[self.member[0].guid])}?vdev={self.member[1].guid}"


def guide_for(alert: Alert) -> Path | None:
    """The guide for the disk of an alert; None where the disk is no longer in the box."""
    box = read_box()
    bay = bays_by_key(box.bays).get(alert.subject)
    row = DiskRow.objects.filter(key=alert.subject).first()
    if bay is None or row is None:
        return None
    member = member_of(box, alert.subject)
    wiped = last_wipe(bay.disk.path, alert.first_seen)
    heard = Source.objects.filter(name="temperatures").values_list("checked", flat=True).first()
    here = Standing(
        row=row,
        member=member,
        over=alert.state == Alert.State.CLEARED,
        wiped=wiped,
        asked=bool(wiped and heard and heard > wiped and not row.asleep),
        compared=before_and_after(row, alert),
    )
    return Path(bay.label, member[0].name if member else "", safety_text(member), tuple(guide_steps(here)))


def member_of(box: Box, key: str) -> tuple[Pool, Vdev] | None:
    """The pool and vdev of a disk. A disk that replaces itself is there twice; the new one counts."""
    for card in box.cards:
        for place in vdev_tree.list_places(card.pool):
            old = place.vdev.path.endswith("/old")
            if place.leaf and place.role in REPLACEABLE and not old and link_of(place.vdev) == key:
                return card.pool, place.vdev
    return None


def safety_text(member: tuple[Pool, Vdev] | None) -> str:
    if member is None:
        return gettext("It belongs to no pool, so no file depends on it.")
    pool, device = member
    left = pool.failures_left
    if left:
        return ngettext(
            "{name} survives {left} more failed disk, so there is time to look closely.",
            "{name} survives {left} more failed disks, so there is time to look closely.",
            left,
        ).format(name=pool.name, left=left)
    if device.state not in vdev_state.WORKING or pool.rebuilding:
        return gettext("{name} survives no failed disk until this one is back or another has its place.").format(
            name=pool.name
        )
    return gettext(
        "{name} survives no failed disk at the moment. Do not take this one out before you have its "
        "replacement at hand."
    ).format(name=pool.name)


def last_wipe(path: str, since: datetime) -> datetime | None:
    """When the disk was last fully erased since the alert began."""
    jobs = Job.objects.filter(kind="erase-disk", subject=path, state=Job.State.DONE, created__gte=since)
    return next((job.finished for job in jobs.only("operation", "finished") if job.fields.get("how") == "full"), None)


def guide_steps(here: Standing) -> Iterator[GuideStep]:
    found = (evidence_step(here), offline_step(here), erase_step(here), return_step(here))
    first = next((at for at, (_title, _text, done, _links) in enumerate(found) if not done), len(found))
    for at, (title, text, done, links) in enumerate(found):
        yield GuideStep(title, text, "healthy" if done else "working" if at == first else "empty", links)


def evidence_step(here: Standing) -> tuple[str, str, bool, Links]:
    told = " ".join(text_of(reason[1]) for reason in here.row.reasons if reason[0] in {"failing", "watch"})
    health = reverse("disk_health", args=[here.row.key])
    nothing = text_of(here.row.smart_text) if here.row.verdict == "unknown" else gettext("It counts no faults now.")
    return (
        gettext("Look at the evidence"),
        told or nothing,
        here.is_done(here.is_out, bool(here.wiped)),
        ((gettext("See figures and graphs"), health),),
    )


def offline_step(here: Standing) -> tuple[str, str, bool, Links]:
    links: Links = ()
    if here.is_working and not here.wiped and not here.over:
        links = (
            (gettext("Take it offline to test it"), here.action_link("offline")),
            (gettext("Replace it now"), here.replace_link),
        )
    return (
        gettext("Take it out of use"),
        gettext("ZFS goes on with the other disks. Files stay available."),
        here.is_done(here.is_out, bool(here.wiped)),
        links,
    )


def erase_step(here: Standing) -> tuple[str, str, bool, Links]:
    told = gettext(
        "Writing every sector lets the disk replace what it cannot read. What it counted before and after "
        "says whether it can be trusted."
    )
    links: Links = ()
    if here.is_out and not here.wiped:
        links = ((gettext("Erase every sector"), f"{reverse('wipe_disk', args=[here.row.key])}?how=full"),)
        if here.member:
            links += (
                (gettext("Use it again as it is"), here.action_link("online")),
                (gettext("Replace it now"), here.replace_link),
            )
    return (gettext("Erase it fully"), f"{told} {here.compared}".strip(), here.is_done(bool(here.wiped)), links)


def return_step(here: Standing) -> tuple[str, str, bool, Links]:
    title = gettext("Back into the pool, or replace it")
    report = (gettext("A report for the warranty"), f"{reverse('disk_health', args=[here.row.key])}?report=1")
    if not here.wiped:
        return (
            title,
            gettext(
                "The erased disk goes back into the pool as if it were new, or another takes its place. The "
                "alert clears by itself."
            ),
            here.is_done(),
            (),
        )
    if here.is_working and here.member:
        pool = here.member[0]
        if pool.rebuilding:
            return (
                title,
                gettext("It is back, and {name} is being rebuilt onto it. Files stay available.").format(
                    name=pool.name
                ),
                False,
                (),
            )
        return title, gettext("It is back in {name}, which is rebuilt.").format(name=pool.name), True, ()
    if not here.asked:
        return title, gettext("Its health is being read. That takes a few minutes."), False, (report,)
    told, done, links = say_verdict(here)
    return title, told, done, (*links, report)


def say_verdict(here: Standing) -> tuple[str, bool, Links]:
    """What the disk says of itself after it was erased, whether that is the end of it, and what can be done."""
    back: Links = (
        ((gettext("Put it back into the pool"), reverse("put_back", args=[here.row.key])),) if here.member else ()
    )
    other: Links = ((gettext("Replace it with another"), here.replace_link),) if here.member else ()
    if "silent" in here.row.reading:
        return gettext("It does not report its health now, so nothing says whether it can be trusted."), False, other
    if here.row.verdict == "healthy":
        told = gettext("It no longer reports a fault. ") + (
            gettext("It can go back into its pool.") if here.member else gettext("It can be used again.")
        )
        return told, here.over and not here.member, (*back, *other)
    if here.row.verdict == "watch":
        told = gettext(
            "It still counts something, but nothing that says it is failing. It can go back, and you are alerted "
            "again if a figure grows. Or send it back under warranty."
        )
        return told, False, (*back, *other)
    if here.row.verdict != "failing":
        told = gettext("{smart_text} So nothing says whether it can be trusted.")
        return told.format(smart_text=text_of(here.row.smart_text)), False, (*back, *other)
    return gettext("It still counts faults. Send it back under warranty, or throw it away."), False, other


def before_and_after(row: DiskRow, alert: Alert) -> str:
    """``sectors that cannot be read: 312 at most, 0 now``"""
    counts = row.reading.get("counts", {})
    days = DiskDay.objects.filter(disk=row.key, day__gte=alert.first_seen.date())
    most: dict[str, int] = {}
    for day in days:
        for name, value in day.values.items():
            most[name] = max(most.get(name, 0), value[1])
    found = [
        gettext("{name}: {most} at most, {name_2} now").format(
            name=text_of(NAMES.get(name, name)), most=most[name], name_2=counts.get(name, gettext("not reported"))
        )
        for name in LOOKED_AT
        if most.get(name)
    ]
    return "; ".join(found) + "." if found else ""
