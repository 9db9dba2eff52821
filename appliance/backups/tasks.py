"""Backup tasks: what is copied where, when, and how long the copies are kept.

The tasks of a folder are JSON in the ZFS property ``larder:backup`` of its dataset, so they move with the disks.
A property that is inherited or was received is no task of that dataset.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import Literal

import msgspec

from appliance import names
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset
from appliance.facts.kept_copies import Keep
from appliance.message import Message
from appliance.snapshots.policy import slot_number
from appliance.strict_struct import StrictStruct

Every = Literal["hourly", "daily", "weekly"]
KEY = re.compile(r"[0-9a-f]{8}")
NAME_THERE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}")
MOST_TASKS = 8  # of one folder; a ZFS user property holds 8 KiB
MOST_RATE = 10_000  # MB a second
MB = 1_000_000
HOME = "backups"  # the folder of a pool that copies lie in
WORDS: dict[str, str] = {
    "hourly": Message("every hour"),
    "daily": Message("every day"),
    "weekly": Message("every week"),
}


def check_key(key: str) -> None:
    """Raises Refused."""
    if not KEY.fullmatch(key):
        raise Refused(Reason("backup-key-invalid", "That is not a backup of Larder.", field="key"))


def task_missing(dataset: str) -> Reason:
    return Reason("backup-missing", "{dataset} no longer has this backup.", dataset=dataset)


class BackupTask(StrictStruct):
    """One destination of one folder. ``pool`` is the guid of the pool there, ``path`` the dataset below it.

    ``remote``: the id of another computer that the copies go to over ssh.
    ``pool`` is then 0, ``path`` the name below its folder.

    ``hour`` is one of the box's clock; a weekly task runs on Sundays. ``days``: how old the last good copy may become
    before that is an alert. ``removable``: the pool's disk comes and goes; Larder imports it for a run and exports it
    then. ``drill``: whether a restore of the whole folder is tested every month. ``rate``: at most so many MB a second,
    0 for any number, from the hour ``slow_from`` until ``slow_until``; equal: always.
    """

    key: str
    pool: int
    path: str
    every: Every = "daily"
    hour: int = 2
    below: bool = True
    keep: Keep = Keep()
    days: int = 2
    removable: bool = False
    drill: bool = False
    rate: int = 0
    slow_from: int = 0
    slow_until: int = 0
    remote: str = ""

    def __post_init__(self) -> None:
        check_key(self.key)
        if not 0 <= self.pool < 2**64:
            raise Refused(Reason("guid-invalid", "That is not a pool.", field="pool"))
        if self.remote:
            check_place_there(self)
        else:
            check_place_here(self.path)
        for field in ("hour", "slow_from", "slow_until"):
            if not 0 <= getattr(self, field) <= 23:
                raise Refused(Reason("hour-out-of-range", "Choose an hour between 0 and 23.", field=field))
        if not 0 <= self.rate <= MOST_RATE:
            raise Refused(
                Reason(
                    "backup-rate-out-of-range",
                    "Enter a number of MB a second from 1 to {most}.",
                    field="rate",
                    most=MOST_RATE,
                )
            )
        if not 1 <= self.days <= 366:
            raise Refused(Reason("backup-days-out-of-range", "Enter a number of days from 1 to 366.", field="days"))

    @property
    def when(self) -> str:
        """``every day at 02:00``"""
        if self.every == "hourly":
            return WORDS["hourly"]
        hour = f"{self.hour:02}:00"
        return (
            Message("every Sunday at {hour}", hour=hour)
            if self.every == "weekly"
            else Message("every day at {hour}", hour=hour)
        )

    @property
    def speed(self) -> str:
        """``at most 20 MB/s between 08:00 and 23:00``; empty where nothing slows it down."""
        if not self.rate:
            return ""
        if self.slow_from == self.slow_until:
            return Message("at most {rate} MB/s", rate=self.rate)
        return Message(
            "at most {rate} MB/s between {first} and {last}",
            rate=self.rate,
            first=f"{self.slow_from:02}:00",
            last=f"{self.slow_until:02}:00",
        )

    def most_bytes_a_second(self, now: datetime, zone: tzinfo) -> int:
        """How fast a run may send at this moment, in bytes a second; 0: as fast as it can."""
        hour, start, end = now.astimezone(zone).hour, self.slow_from, self.slow_until
        slow = start == end or (start <= hour < end if start < end else hour >= start or hour < end)
        return self.rate * MB if slow else 0

    def find_pool(self, facts: Facts) -> Pool | None:
        """The pool of the copies, whatever it is called here; None while it is not connected."""
        return facts.pool_of(self.pool)

    def root(self, pool: Pool) -> str:
        """The dataset of the copy."""
        return f"{pool.name}/{self.path}"

    def is_due(self, last: datetime | None, now: datetime, zone: tzinfo) -> bool:
        """Whether a run is due, ``last`` being the moment of the newest copy. A missed run is made up for once."""
        if last is None or last > now:
            return True
        if self.every == "hourly":
            return slot_number("hourly", now, zone) > slot_number("hourly", last, zone)
        grain = "weekly" if self.every == "weekly" else "daily"
        # The day, or the week that ends on Sunday, begins at the task's hour.
        return slot_of(grain, now, self.hour, zone) > slot_of(grain, last, self.hour, zone)


def slot_of(grain: str, at: datetime, hour: int, zone: tzinfo) -> int:
    """The number of the day or of the week from Sunday that contains a moment, each beginning at ``hour``."""
    local = at.astimezone(zone)
    day = local.date().toordinal() - (local.hour < hour)
    return day // 7 if grain == "weekly" else day  # 1 January of the year 1, day 1, was a Monday


def check_place_here(path: str) -> None:
    """Copies in a pool of this box lie in one folder. Raises Refused."""
    home, _slash, name = path.partition("/")
    if home != HOME or "/" in name:
        raise Refused(
            Reason(
                "backup-path-invalid", "Copies are stored in the folder {home} of their pool.", field="path", home=HOME
            )
        )
    names.check_folder_name(name, field="path")


def check_place_there(task: BackupTask) -> None:
    """Copies on another computer have a plain name: it travels through ssh. Raises Refused."""
    if not KEY.fullmatch(task.remote) or task.pool or task.removable:
        raise Refused(
            Reason(
                "backup-elsewhere-invalid",
                "A backup goes to a pool of this box or to another computer, not to both.",
                field="pool",
            )
        )
    if not NAME_THERE.fullmatch(task.path):
        raise Refused(
            Reason(
                "backup-name-elsewhere-invalid",
                "On another computer a copy has a name of letters, digits, hyphens, underscores and dots "
                "only, at most 60.",
                field="path",
            )
        )


class Tasks(StrictStruct):
    """The text of ``larder:backup``."""

    tasks: tuple[BackupTask, ...]


def parse_tasks(text: str) -> tuple[BackupTask, ...]:
    """The tasks in a property's text; none if it is invalid, since it may come from a foreign pool."""
    try:
        return msgspec.json.decode(text, type=Tasks).tasks if text else ()
    except (msgspec.MsgspecError, RecursionError, Refused):
        return ()


def encode_tasks(tasks: tuple[BackupTask, ...]) -> str:
    return msgspec.json.encode(Tasks(tasks=tasks)).decode()


def tasks_of(dataset: Dataset) -> tuple[BackupTask, ...]:
    """The tasks that are set on a dataset itself, on this box. A copy has none."""
    return parse_tasks(dataset.own_backup)


def find_task(dataset: Dataset | None, key: str) -> BackupTask | None:
    return next((task for task in tasks_of(dataset) if task.key == key), None) if dataset else None


def members(dataset: Dataset, task: BackupTask, facts: Facts) -> list[Dataset]:
    """The datasets that a task copies, parents first: never copies, and never what a benchmark has made."""
    tree = facts.below(dataset.name) if task.below else (dataset,)
    out: list[Dataset] = []
    skipped: tuple[str, ...] = ()
    for one in tree:
        if one.copy_of or one.scratch or f"{one.name}/".startswith(skipped or ("\0",)):
            skipped = (*skipped, f"{one.name}/")
        else:
            out.append(one)
    return out
