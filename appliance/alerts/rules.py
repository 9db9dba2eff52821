"""Alert rules: pure functions from facts to faults. A rule that breaks stops no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from appliance.alerts.fault import HYSTERESIS, TOLD_FOR, AlertInput, DiskStatus, Fault, judge_each
from appliance.alerts.kinds import KINDS
from appliance.alerts.pool_rules import device_faults, missing_pool_faults, pool_faults, scan_faults, space_faults
from appliance.alerts.sources import source_text
from appliance.formatting import continue_sentence, size_text
from appliance.message import Message, join_messages
from appliance.system.network_port import PortStatus
from appliance.zfs import kernel_module

log = logging.getLogger(__name__)
LATE_AFTER = {"temperatures": timedelta(minutes=30)}
LATE = timedelta(minutes=10)
# Services that are missed wherever they are installed, and those that are missed where a share needs them.
SERVICES = {
    "smartmontools.service": "service.smartd",
    "zfs-zed.service": "service.zed",
    "nginx.service": "service.pages",
}
FILE_SERVERS = {"smbd.service": "smb", "nfs-server.service": "nfs", "netatalk.service": "afp"}
# The states of systemd that mean that a service does not run.
UNIT_STATES = {"failed": Message("failed"), "inactive": Message("inactive"), "deactivating": Message("deactivating")}
UP = {"active", "activating", "reloading"}
SYSTEM_FULL = 90  # per cent of the system disk; what is left for root alone counts as used


def disk_faults(seen: AlertInput) -> Iterator[Fault]:
    def of_disk(disk: DiskStatus) -> Iterator[Fault]:
        return faults_of_disk(disk, told_silent=("disk.silent", disk.key) in seen.open)

    yield from judge_each(seen.disks, of_disk)


def faults_of_disk(disk: DiskStatus, *, told_silent: bool) -> Iterator[Fault]:
    """``told_silent``: whether its silence is an open alert."""
    where = (
        Message("Disk in {disk_label}", disk_label=disk.label)
        if disk.in_bay
        else Message("Disk {disk_label}", disk_label=disk.label)
    )
    link = f"/disks/{disk.key}/"
    yield from health_faults(disk, where, link)
    if disk.slow:
        yield Fault(
            "disk.slow",
            disk.key,
            Message("{where} is slow.", where=where),
            join_messages([disk.slow, disk.serial_text]),
            link,
        )
    if disk.silent and (not disk.away or told_silent):
        yield Fault(
            "disk.silent",
            disk.key,
            Message("{where} has stopped reporting its health.", where=where),
            join_messages(
                [
                    disk.silent if isinstance(disk.silent, Message) else f"{disk.silent.rstrip('. ')}.",
                    disk.serial_text,
                ]
            ),
            link,
        )
    if disk.untested:
        yield Fault(
            "test.overdue",
            disk.key,
            Message("{where} has an overdue self-test.", where=where),
            disk.untested,
            f"{link}health/",
        )


def health_faults(disk: DiskStatus, where: str, link: str) -> Iterator[Fault]:
    """What its SMART figures say. ``where``: the disk, as a sentence begins with it."""
    warm = [reason for reason in disk.reasons if reason.count == "temperature"]
    others = [reason for reason in disk.reasons if reason.count != "temperature"]
    grave = [reason for reason in others if reason.state == "failing"]
    looks = [reason for reason in others if reason.state == "watch"]
    mark = sum(reason.value for reason in others)
    said = (grave or looks)[:1]  # in the headline, so not again below it
    pool = Message("It belongs to the pool {pool}.", pool=disk.pool) if disk.pool else ""
    texts = join_messages([*(reason.text for reason in others if reason not in said), pool, disk.serial_text])
    if grave:
        yield Fault(
            "disk.failing",
            disk.key,
            Message("{where} is failing: {reason}", where=where, reason=continue_sentence(grave[0].text)),
            texts,
            link,
            mark,
        )
    elif looks:
        yield Fault(
            "disk.watch",
            disk.key,
            Message("{where} needs attention: {reason}", where=where, reason=continue_sentence(looks[0].text)),
            texts,
            link,
            mark,
        )
    for reason in warm:
        yield Fault("disk.warm", disk.key, Message("{where} is too warm.", where=where), reason.text, link)


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
            yield Fault(
                "service.shares",
                service.unit,
                Message("Folders shared over {protocol} cannot be reached.", protocol=protocol.upper()),
                state,
                "/folders/",
            )
    for name in seen.unhooked:
        yield Fault("hook.missing", name.lower(), Message("{name} does not report to Larder.", name=name))
    if says := kernel_module.known_fault(seen.module):
        yield Fault("zfs.faulty", "zfs", Message("ZFS {module} is known to damage files.", module=seen.module), says)
    for name, last, error in seen.checked:
        if seen.now - last > LATE_AFTER.get(name, LATE) or error:
            yield Fault(
                "source.stopped",
                name,
                source_text(name).failing
                if error
                else Message("The {name} have not been read lately.", name=source_text(name).name),
                error,
            )
    for name, error in seen.failing:
        yield Fault("source.stopped", name, source_text(name).failing, error)
    if seen.mail_fails:
        yield Fault("mail.failing", "mail", Message("Mail cannot be sent."), seen.mail_fails, "/alerts/mail/")


def box_faults(seen: AlertInput) -> Iterator[Fault]:
    """Faults of the system disk, and restarts of the worker."""
    for disk in seen.system:
        if disk.read_only:
            yield Fault(
                "system.readonly",
                disk.place,
                Message("The system disk cannot be written to ({place}).", place=disk.place),
            )
        elif disk.percent >= SYSTEM_FULL or (
            ("system.full", disk.place) in seen.open and disk.percent >= SYSTEM_FULL - HYSTERESIS
        ):
            yield Fault(
                "system.full",
                disk.place,
                Message("The system disk is {percent} % full ({place}).", percent=disk.percent, place=disk.place),
                Message("{free} are free.", free=size_text(disk.free)),
                mark=disk.percent,
            )
    if (last := seen.restarted) and abs(seen.now - last.at) < TOLD_FOR:
        yield Fault(
            "worker.restarted",
            "worker",
            Message("Larder's background worker hung and was restarted."),
            Message(
                "{what}Restarts since the box started: {count}.",
                what=Message("It hung in: {name}. ", name=source_text(last.stage).name) if last.stage else "",
                count=last.count,
            ),
            mark=last.count,
        )


def port_faults(seen: AlertInput) -> Iterator[Fault]:
    """Slow links and lost frames. One that has an alert keeps it until it was looked at for long enough."""

    def of_port(port: PortStatus) -> Iterator[Fault]:
        if port.half_duplex:
            yield Fault(
                "port.half-duplex",
                port.name,
                Message("Network port {port} runs at half duplex.", port=port.name),
                port.slow,
                "/system/",
            )
        elif port.slow:
            yield Fault(
                "port.slow",
                port.name,
                Message("Network port {port} is slower than it can be.", port=port.name),
                port.slow,
                "/system/",
            )
        if port.losses or (port.unsure and ("port.losses", port.name) in seen.open):
            yield Fault(
                "port.losses",
                port.name,
                Message("Network port {port} loses data.", port=port.name),
                port.losses,
                "/system/",
            )

    yield from judge_each(seen.ports, of_port)


def waiting_job_faults(seen: AlertInput) -> Iterator[Fault]:
    for one, page in seen.waiting:
        yield Fault(
            "job.waiting",
            one.job,
            Message("{one_title}: starts at {at}.", one_title=one.title, at=one.at),
            Message("It was started without your password. The job number is {job}.", job=one.job),
            page,
        )


RULES: tuple[Callable[[AlertInput], Iterator[Fault]], ...] = (
    disk_faults,
    pool_faults,
    device_faults,
    scan_faults,
    space_faults,
    silence_faults,
    box_faults,
    port_faults,
    missing_pool_faults,
    waiting_job_faults,
)


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
