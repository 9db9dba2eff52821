"""What the alert rules are given, and the faults that they find."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from appliance.agent.delayed_jobs import Waiting
from appliance.alerts.alert_kind import AlertKind
from appliance.alerts.kinds import KINDS
from appliance.disks.health import HealthReason, State
from appliance.facts.box import Pool, Service, Vdev
from appliance.formatting import about_days
from appliance.message import Message
from appliance.pools import fullness
from appliance.system.network_port import PortStatus
from appliance.system.system_disk import SystemDisk

log = logging.getLogger(__name__)
Item = TypeVar("Item")
TOLD_FOR = timedelta(days=2)
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
    """How full a pool is, in per cent, and in how many days it is filling up (80 %) and nearly full (90 %) at
    the pace of the last weeks."""

    guid: int
    pool: str
    percent: int
    free: int
    days: int | None = None
    days_to_notice: int | None = None
    received: str = ""  # a sentence on the copies that other boxes bring here

    @property
    def forecast_text(self) -> str:
        """``At this pace it will be 80 % full in about 40 days and 90 % in about 3
        months.`` Empty: it does not grow."""
        if self.percent < fullness.NOTICE and self.days_to_notice is not None and self.days is not None:
            notice, warning = about_days(self.days_to_notice), about_days(self.days)
            return Message(
                "At this pace it will be {notice} % full in about {notice_2} and {warning} % in about {warning_2}.",
                notice=fullness.NOTICE,
                notice_2=notice,
                warning=fullness.WARNING,
                warning_2=warning,
            )
        if self.percent < fullness.WARNING and self.days is not None:
            return Message(
                "At this pace it will be {warning} % full in about {days}.",
                warning=fullness.WARNING,
                days=about_days(self.days),
            )
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
    """The last restart of a hung worker: when, the stage it hung in, and the number of
    restarts since the box started."""

    at: datetime
    stage: str
    count: int


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong. ``subject`` identifies it; ``mark`` grows when it gets worse, which
    reopens an acknowledged alert."""

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
    slope = (
        sum((time - middle) * (amount - level) for time, amount in zip(times, used, strict=True)) / spread
        if spread
        else 0
    )
    wanted = total * percent / 100
    if slope <= 0 or used[-1] >= wanted:
        return None
    days = (wanted - used[-1]) / slope
    return int(days) if days < 3650 else None
