"""Alert rules: pure functions from facts to faults. A rule that breaks stops no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from appliance.agent.delayed_jobs import Waiting
from appliance.alerts.kinds import KINDS, AlertKind
from appliance.alerts.sources import source_text
from appliance.disks.health import HealthReason, State
from appliance.facts import vdev_state
from appliance.facts.box import Pool, Service, Vdev
from appliance.formatting import about_days, continue_sentence, names_text, size_text
from appliance.message import Message, join_messages
from appliance.pools import fullness, health
from appliance.system.network_port import PortStatus
from appliance.system.system_disk import SystemDisk
from appliance.zfs import kernel_module, vdev_tree

log = logging.getLogger(__name__)
Item = TypeVar("Item")
SUMS = (Message("read"), Message("write"), Message("checksum"))
LATE_AFTER = {"temperatures": timedelta(minutes=30)}
LATE = timedelta(minutes=10)
FULL_KINDS = ((fullness.CRITICAL, "pool.full96"), (fullness.WARNING, "pool.full90"), (fullness.NOTICE, "pool.full80"))
SOON, SOON_STILL = 14, 21  # days until it is nearly full: when that is an alert, and until when it stays one
TOLD_FOR = timedelta(days=2)
ROLES = {"spare": Message("spare"), "cache": Message("cache")}
STALLS = 5  # requests of more than 30 seconds: a disk that spins up takes less
# Services that are missed wherever they are installed, and those that are missed where a share needs them.
SERVICES = {"smartmontools.service": "service.smartd", "zfs-zed.service": "service.zed", "nginx.service": "service.pages"}  # fmt: skip
FILE_SERVERS = {"smbd.service": "smb", "nfs-server.service": "nfs", "netatalk.service": "afp"}
# The states of systemd that mean that a service does not run.
UNIT_STATES = {"failed": Message("failed"), "inactive": Message("inactive"), "deactivating": Message("deactivating")}
UP = {"active", "activating", "reloading"}
SYSTEM_FULL = 90  # per cent of the system disk; what is left for root alone counts as used
HYSTERESIS = 2  # per cent that a pool has to empty below the mark before its alert clears


class DiskStatus(msgspec.Struct, frozen=True):
    """A disk as the rules see it. ``label`` is ``bay 3 (WD20EARS …1234)``; ``serial`` is the number on its sticker."""

    key: str
    label: str
    state: State
    reasons: tuple[HealthReason, ...] = ()
    pool: str = ""
    slow: str = ""  # how slow, in words, where it is the outlier among its siblings
    silent: str = ""  # why it does not answer, where it did before
    away: bool = False  # its pool no longer uses it, which has an alert of the pool
    untested: str = ""  # a sentence where its long self-test is overdue
    serial: str = ""
    in_bay: bool = True  # whether the label begins with the bay; else it is the disk alone, whose bay is unknown

    @property
    def serial_text(self) -> str:
        return Message("Its serial number is {serial}.", serial=self.serial) if self.serial else ""


class Space(msgspec.Struct, frozen=True):
    """How full a pool is, in per cent, and in how many days it is filling up (80 %) and nearly full (90 %) at the pace of
    the last weeks."""

    guid: int
    pool: str
    percent: int
    free: int
    days: int | None = None
    days_to_notice: int | None = None
    received: str = ""  # a sentence on the copies that other boxes bring here

    @property
    def forecast_text(self) -> str:
        """``At this pace it will be 80 % full in about 40 days and 90 % in about 3 months.`` Empty: it does not grow."""
        if self.percent < fullness.NOTICE and self.days_to_notice is not None and self.days is not None:
            notice, warning = about_days(self.days_to_notice), about_days(self.days)
            return Message("At this pace it will be {notice} % full in about {notice_2} and {warning} % in about {warning_2}.", notice=fullness.NOTICE, notice_2=notice, warning=fullness.WARNING, warning_2=warning)  # fmt: skip
        if self.percent < fullness.WARNING and self.days is not None:
            return Message("At this pace it will be {warning} % full in about {days}.", warning=fullness.WARNING, days=about_days(self.days))  # fmt: skip
        return ""


class AlertInput(msgspec.Struct, frozen=True):
    """All facts that the rules use; ``open`` are the open alerts."""

    now: datetime
    pools: tuple[Pool, ...] = ()
    disks: tuple[DiskStatus, ...] = ()
    services: tuple[Service, ...] = ()
    shared: frozenset[str] = frozenset()  # protocols over which something is shared
    spaces: tuple[Space, ...] = ()
    checked: tuple[tuple[str, datetime, str], ...] = ()  # what is read regularly: source, last reading, its error
    failing: tuple[tuple[str, str], ...] = ()  # whatever else runs in the background and fails, with its error
    system: tuple[SystemDisk, ...] = ()
    ports: tuple[PortStatus, ...] = ()  # of the network: wired ones of the box itself that are up
    restarted: Restarted | None = None
    overdue: tuple[Fault, ...] = ()  # scheduled work that did not happen, each under its own kind
    missing: tuple[tuple[str, str], ...] = ()  # guid and name of pools that were there
    unhooked: tuple[str, ...] = ()  # services that run without reporting to Larder: ZED, smartd
    module: str = ""  # version of the ZFS module
    mail_fails: str = ""  # the server's last answer
    waiting: tuple[tuple[Waiting, str], ...] = ()  # jobs without proof of the password that wait, and their pages
    open: frozenset[tuple[str, str]] = frozenset()  # kind and subject
    names: Callable[[Vdev], str] = lambda device: device.name


class Restarted(msgspec.Struct, frozen=True):
    """The last restart of a hung worker: when, the stage it hung in, and the number of restarts since the box started."""

    at: datetime
    stage: str
    count: int


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong. ``subject`` identifies it; ``mark`` grows when it gets worse, which reopens an acknowledged alert."""

    kind: str
    subject: str
    summary: str
    detail: str = ""
    link: str = ""
    mark: int = 0

    @property
    def kind_info(self) -> AlertKind:
        return KINDS[self.kind]

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.subject


class Incomplete(Exception):
    """A rule raised an exception for some of its items."""


def judge_each(items: Iterable[Item], faults_of: Callable[[Item], Iterable[Fault]]) -> Iterator[Fault]:
    """The faults of all items. One item that breaks the rule hides no other; Incomplete is raised after the last."""
    broken = 0
    for item in items:
        try:
            yield from list(faults_of(item))
        except Exception:
            log.exception("an alert rule broke for one of several")
            broken += 1
    if broken:
        raise Incomplete(Message("{broken} could not be judged", broken=broken))


def disk_faults(seen: AlertInput) -> Iterator[Fault]:
    def of_disk(disk: DiskStatus) -> Iterator[Fault]:
        warm = [reason for reason in disk.reasons if reason.count == "temperature"]
        others = [reason for reason in disk.reasons if reason.count != "temperature"]
        grave = [reason for reason in others if reason.state == "failing"]
        looks = [reason for reason in others if reason.state == "watch"]
        where = Message("Disk in {disk_label}", disk_label=disk.label) if disk.in_bay else Message("Disk {disk_label}", disk_label=disk.label)  # fmt: skip
        link, mark = f"/disks/{disk.key}/", sum(reason.value for reason in others)
        said = (grave or looks)[:1]  # in the headline, so not again below it
        pool = Message("It belongs to the pool {pool}.", pool=disk.pool) if disk.pool else ""
        texts = join_messages([*(reason.text for reason in others if reason not in said), pool, disk.serial_text])
        if grave:
            yield Fault("disk.failing", disk.key, Message("{where} is failing: {reason}", where=where, reason=continue_sentence(grave[0].text)), texts, link, mark)  # fmt: skip
        elif looks:
            yield Fault("disk.watch", disk.key, Message("{where} needs attention: {reason}", where=where, reason=continue_sentence(looks[0].text)), texts, link, mark)  # fmt: skip
        for reason in warm:
            yield Fault("disk.warm", disk.key, Message("{where} is too warm.", where=where), reason.text, link)
        if disk.slow:
            yield Fault("disk.slow", disk.key, Message("{where} is slow.", where=where), join_messages([disk.slow, disk.serial_text]), link)  # fmt: skip
        if disk.silent and (not disk.away or ("disk.silent", disk.key) in seen.open):
            yield Fault("disk.silent", disk.key, Message("{where} has stopped reporting its health.", where=where), join_messages([disk.silent if isinstance(disk.silent, Message) else f"{disk.silent.rstrip('. ')}.", disk.serial_text]), link)  # fmt: skip
        if disk.untested:
            yield Fault("test.overdue", disk.key, Message("{where} has an overdue self-test.", where=where), disk.untested, f"{link}health/")  # fmt: skip

    yield from judge_each(seen.disks, of_disk)


def pool_faults(seen: AlertInput) -> Iterator[Fault]:
    def of_pool(pool: Pool) -> Iterator[Fault]:
        guid, link = str(pool.guid), f"/pools/{pool.guid}/"
        broken = [one for one in pool.devices() if one.state in vdev_state.LOST and one.role not in {"spare", "cache"}]
        away = names_text([vdev_state.say(seen.names(one), one.state) for one in broken], 6, "; ")
        headline = health.of_pool(pool, seen.names).headline  # as the pool's page says it
        if pool.state in {"SUSPENDED", *vdev_state.UNUSABLE}:
            yield Fault("pool.stopped", guid, headline, away, link)
        elif broken and all(one.state == "OFFLINE" for one in broken):
            yield Fault("pool.offline", guid, Message("{pool} runs without a disk that was taken offline.", pool=pool.name), away, link, len(broken))  # fmt: skip
        elif broken and pool.failures_left == 0:
            yield Fault("pool.no-redundancy", guid, headline, away, link, len(broken))
        elif broken or health.is_degraded_by_itself(pool):
            yield Fault("pool.degraded", guid, headline, away, link, len(broken))
        helpers = [one for one in pool.devices() if one.state in vdev_state.LOST and one.role in {"spare", "cache"}]
        for one in helpers:
            yield Fault("pool.helper", f"{guid}/{one.guid}", Message("{pool}: the {role} disk {names} does not work.", pool=pool.name, role=ROLES[one.role], names=seen.names(one)), "", link)  # fmt: skip
        if pool.errors:
            count = Message("1 place") if pool.errors == 1 else Message("{count} places", count=pool.errors)
            yield Fault("pool.damaged", guid, Message("{pool} has damaged files: {count}.", pool=pool.name, count=count), "", f"{link}reports/", pool.errors)  # fmt: skip

    yield from judge_each(seen.pools, of_pool)


def device_faults(seen: AlertInput) -> Iterator[Fault]:
    """One fault for each device with errors. A device that ZFS has faulted for them is part of the pool's fault instead."""
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
                told = join_messages([Message("{count} {what}", count=count, what=what) for count, what in zip(counts, SUMS, strict=True) if count], ", ")  # fmt: skip
                yield Fault("pool.errors", subject, Message("{pool}: {names} made errors.", pool=pool.name, names=seen.names(device)), Message("Counted: {told}.{advice}", told=told, advice=advice), f"/pools/{pool.guid}/", sum(counts))  # fmt: skip

            if device.slow_ios >= STALLS:
                yield Fault("pool.stalls", subject, Message("{pool}: {names} was very slow to answer.", pool=pool.name, names=seen.names(device)), Message("Counted: {slow_ios} requests of more than 30 seconds.{advice}", slow_ios=device.slow_ios, advice=advice), f"/pools/{pool.guid}/", device.slow_ios)  # fmt: skip

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
    """The result of the last scrub or rebuild while ZFS reports it. Errors stay until a run ends without any, however old
    they are; a good result is reported for two days."""

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
                yield Fault("scan.errors", subject, errors_left(pool.name, scan.kind, scan.errors), "", link, scan.errors)  # fmt: skip
            elif scan.kind == "scrub" and scan.repaired:
                yield Fault("pool.repaired", subject, Message("{pool} repaired itself.", pool=pool.name), Message("The scrub rewrote {repaired}; no errors are left.", repaired=size_text(scan.repaired)), link)  # fmt: skip
            elif scan.kind == "resilver" and scan.repaired:
                yield Fault("pool.rebuilt", subject, Message("{pool} was rebuilt.", pool=pool.name), Message("{repaired} were written; no errors are left.", repaired=size_text(scan.repaired)), link)  # fmt: skip

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
                yield Fault(kind, subject, Message("{pool} is {percent} % full.", pool=space.pool, percent=space.percent), join_messages(said if fast else [room, *said, space.forecast_text]), page)  # fmt: skip
                break
        if fast:
            yield Fault("pool.filling", subject, Message("{pool} fills up fast.", pool=space.pool), join_messages([space.forecast_text, room]), f"/pools/{space.guid}/growth/")  # fmt: skip

    yield from judge_each(seen.spaces, of_one)


def silence_faults(seen: AlertInput) -> Iterator[Fault]:
    """Services that do not run, sources that were not read lately, and whatever fails in the background."""
    for service in seen.services:
        if not service.present or service.active in UP:
            continue
        protocol, state = (
            FILE_SERVERS.get(service.unit),
            Message(
                "{unit} is {active}.",
                unit=service.unit,
                active=UNIT_STATES.get(service.active, service.active or Message("not known")),
            ),
        )
        if kind := SERVICES.get(service.unit):
            yield Fault(kind, service.unit, Message("{kind}.", kind=KINDS[kind].name), state)
        elif protocol in seen.shared:
            yield Fault("service.shares", service.unit, Message("Folders shared over {protocol} cannot be reached.", protocol=protocol.upper()), state, "/folders/")  # fmt: skip
    for name in seen.unhooked:
        yield Fault("hook.missing", name.lower(), Message("{name} does not report to Larder.", name=name))
    if says := kernel_module.known_fault(seen.module):
        yield Fault("zfs.faulty", "zfs", Message("ZFS {module} is known to damage files.", module=seen.module), says)
    for name, last, error in seen.checked:
        if seen.now - last > LATE_AFTER.get(name, LATE) or error:
            yield Fault("source.stopped", name, source_text(name).failing if error else Message("The {name} have not been read lately.", name=source_text(name).name), error)  # fmt: skip
    for name, error in seen.failing:
        yield Fault("source.stopped", name, source_text(name).failing, error)
    if seen.mail_fails:
        yield Fault("mail.failing", "mail", Message("Mail cannot be sent."), seen.mail_fails, "/alerts/mail/")


def missing_pool_faults(seen: AlertInput) -> Iterator[Fault]:
    for guid, name in seen.missing:
        yield Fault("pool.missing", guid, Message("{name} is missing.", name=name), "", "/pools/import/")


def box_faults(seen: AlertInput) -> Iterator[Fault]:
    """Faults of the system disk, and restarts of the worker."""
    for disk in seen.system:
        if disk.read_only:
            yield Fault("system.readonly", disk.place, Message("The system disk cannot be written to ({place}).", place=disk.place))  # fmt: skip
        elif disk.percent >= SYSTEM_FULL or (
            ("system.full", disk.place) in seen.open and disk.percent >= SYSTEM_FULL - HYSTERESIS
        ):
            yield Fault("system.full", disk.place, Message("The system disk is {percent} % full ({place}).", percent=disk.percent, place=disk.place), Message("{free} are free.", free=size_text(disk.free)), mark=disk.percent)  # fmt: skip
    if (last := seen.restarted) and abs(seen.now - last.at) < TOLD_FOR:
        yield Fault("worker.restarted", "worker", Message("Larder's background worker hung and was restarted."), Message("{what}Restarts since the box started: {count}.", what=Message("It hung in: {name}. ", name=source_text(last.stage).name) if last.stage else "", count=last.count), mark=last.count)  # fmt: skip


def port_faults(seen: AlertInput) -> Iterator[Fault]:
    """Slow links and lost frames. One that has an alert keeps it until it was looked at for long enough."""

    def of_port(port: PortStatus) -> Iterator[Fault]:
        if port.half_duplex:
            yield Fault("port.half-duplex", port.name, Message("Network port {port} runs at half duplex.", port=port.name), port.slow, "/system/")  # fmt: skip
        elif port.slow:
            yield Fault("port.slow", port.name, Message("Network port {port} is slower than it can be.", port=port.name), port.slow, "/system/")  # fmt: skip
        if port.losses or (port.unsure and ("port.losses", port.name) in seen.open):
            yield Fault("port.losses", port.name, Message("Network port {port} loses data.", port=port.name), port.losses, "/system/")  # fmt: skip

    yield from judge_each(seen.ports, of_port)


def waiting_job_faults(seen: AlertInput) -> Iterator[Fault]:
    for one, page in seen.waiting:
        yield Fault("job.waiting", one.job, Message("{one_title}: starts at {at}.", one_title=one.title, at=one.at), Message("It was started without your password. The job number is {job}.", job=one.job), page)  # fmt: skip


RULES: tuple[Callable[[AlertInput], Iterator[Fault]], ...] = (disk_faults, pool_faults, device_faults, scan_faults, space_faults, silence_faults, box_faults, port_faults, missing_pool_faults, waiting_job_faults)  # fmt: skip


def find_faults(
    seen: AlertInput, rules: Iterable[Callable[[AlertInput], Iterable[Fault]]] = RULES
) -> tuple[list[Fault], bool]:
    """All faults, each once and of a group only the worst, and whether every rule could be evaluated."""
    found: dict[tuple[str, str], Fault] = {}
    complete = True
    for rule in rules:
        try:
            for fault in rule(seen):
                found.setdefault(fault.key, fault)
        except Exception:
            log.exception("an alert rule broke")
            complete = False
    worst: dict[tuple[str, str], int] = {}
    for fault in found.values():
        if fault.kind_info.group:
            place = (fault.kind_info.group, fault.subject)
            worst[place] = max(worst.get(place, 0), fault.kind_info.rank)
    kept = [
        one
        for one in found.values()
        if not one.kind_info.group or one.kind_info.rank == worst[one.kind_info.group, one.subject]
    ]
    return kept, complete


def days_until(samples: list[tuple[datetime, int]], total: int, percent: int) -> int | None:
    """Days until so many per cent of ``total`` bytes are used, by a straight line through the samples (least squares);
    None where it does not grow, or where less than a week is known."""
    if len(samples) < 4 or total <= 0 or samples[-1][0] - samples[0][0] < timedelta(days=7):
        return None
    first = samples[0][0]
    times = [(at - first).total_seconds() / 86400 for at, _used in samples]
    used = [amount for _at, amount in samples]
    middle, level = sum(times) / len(times), sum(used) / len(used)
    spread = sum((time - middle) ** 2 for time in times)
    slope = sum((time - middle) * (amount - level) for time, amount in zip(times, used, strict=True)) / spread if spread else 0  # fmt: skip
    wanted = total * percent / 100
    if slope <= 0 or used[-1] >= wanted:
        return None
    days = (wanted - used[-1]) / slope
    return int(days) if days < 3650 else None
