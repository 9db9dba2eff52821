"""The settings of this box as they go into its record, read from the settings database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from django.db.migrations.recorder import MigrationRecorder

from appliance.errors import Refused
from appliance.recovery import box_settings
from appliance.recovery.box_settings import BoxSettings, SettingGroups
from appliance.recovery.settings_entries import (
    AcceptedValue,
    AlertLevel,
    BayChoice,
    BoxLanguage,
    CareChoice,
    DiskChoice,
    LedgerEntry,
    Notifications,
    PageChoice,
    PlannedGrowth,
    PriceChoice,
    SelfTests,
)
from web.accounts.models import Preferences
from web.alerts.models import Accepted, DiskCare, KindSeverity, MailSettings, SelfTestPlan
from web.disks.models import BayRow
from web.pools.models import CareSchedule, DiskPrice, GrowthPlan
from web.snapshots.models import MadeSnapshot
from web.system.models import BoxChoices

log = logging.getLogger(__name__)
Row = TypeVar("Row")
RECIPIENTS = ("critical", "warning", "notice")
MAIL_FIELDS = (
    "host",
    "port",
    "security",
    "authority",
    "user",
    "sender",
    "quiet_from",
    "quiet_to",
    "digest_hour",
    "weekly",
    "address",
)


def database_made() -> int:
    """When this database was made, in microseconds since 1970: what tells it from one that takes its place."""
    first = MigrationRecorder.Migration.objects.order_by("pk").values_list("applied", flat=True).first()
    return round(first.timestamp() * 1_000_000) if first else 1


def seconds_of(moment: datetime | None) -> int | None:
    return int(moment.timestamp()) if moment else None


def read_settings() -> BoxSettings:
    """The settings as they are now; the oldest records of snapshots are left out where there are too many."""
    groups = {group: tuple(READERS[group]()) for group in box_settings.GROUPS}
    found = BoxSettings(made=database_made(), groups=SettingGroups(**groups))
    while len(found.text) > box_settings.LARGEST - 1000 and groups["snapshots"]:
        groups["snapshots"] = groups["snapshots"][: len(groups["snapshots"]) * 3 // 4]
        found = msgspec.structs.replace(found, groups=SettingGroups(**groups))
    return found


def keep_valid(rows: Iterable[Row], make: Callable[[Row], Any], group: str) -> Iterator[Any]:
    """An entry for each row; one that breaks a rule of the record is left out and noted, and loses no other."""
    most = box_settings.GROUPS[group][1]
    count = 0
    for row in rows:
        if count == most:
            log.warning("the record of this box has the first %d of %s only", most, group)
            return
        try:
            yield make(row)
            count += 1
        except Refused:
            log.warning("%s of %s does not go into the record of this box", row, group)


def read_box() -> Iterator[Any]:
    rows = BoxChoices.objects.filter(pk=1).exclude(language="")
    return keep_valid(rows, lambda row: BoxLanguage(language=row.language), "box")


def read_notifications() -> Iterator[Any]:
    row = MailSettings.objects.filter(pk=1)
    return keep_valid(row, notifications_of, "notifications")


def notifications_of(row: MailSettings) -> Notifications:
    values: dict[str, Any] = {name: getattr(row, name) for name in MAIL_FIELDS}
    values |= {name: tuple(row.recipients_for(name)) for name in RECIPIENTS}
    return Notifications(**values)


def read_levels() -> Iterator[Any]:
    rows = KindSeverity.objects.order_by("kind")
    return keep_valid(rows, lambda row: AlertLevel(kind=row.kind, severity=row.severity), "levels")  # type: ignore[arg-type]


def read_accepted() -> Iterator[Any]:
    rows = Accepted.objects.order_by("disk", "count")
    return keep_valid(
        rows, lambda row: AcceptedValue(disk=row.disk, count=row.count, value=row.value, by=row.by), "accepted"
    )


def read_disks() -> Iterator[Any]:
    rows = (row for row in DiskCare.objects.order_by("disk") if not row.tested or row.sleep is not None)
    return keep_valid(rows, lambda row: DiskChoice(disk=row.disk, tested=row.tested, sleep=row.sleep), "disks")


def read_self_tests() -> Iterator[Any]:
    rows = SelfTestPlan.objects.filter(pk=1)
    return keep_valid(
        rows,
        lambda row: SelfTests(short=row.short, long=row.long, first=row.first, last=row.last),  # type: ignore[arg-type]
        "self_tests",
    )


def read_care() -> Iterator[Any]:
    def make(row: CareSchedule) -> CareChoice:
        return CareChoice(
            pool=row.pool_key,
            kind=row.kind,  # type: ignore[arg-type]
            every=row.every,  # type: ignore[arg-type]
            first=row.first,
            last=row.last,
            inside=row.inside,
        )

    return keep_valid(CareSchedule.objects.order_by("pool_key", "kind"), make, "care")


def read_price() -> Iterator[Any]:
    rows = DiskPrice.objects.filter(pk=1).exclude(per_tb=None)
    return keep_valid(rows, lambda row: PriceChoice(per_tb=f"{row.per_tb:.2f}", currency=row.currency), "price")


def read_growth() -> Iterator[Any]:
    def make(row: GrowthPlan) -> PlannedGrowth:
        targets = tuple((str(guid), str(label)) for guid, label in row.targets)
        replaced = tuple((str(old), str(new), str(label), at) for old, new, label, at in row.replaced)
        return PlannedGrowth(
            pool_guid=row.pool_guid,
            pool=row.pool,
            size=row.size,
            targets=targets,
            done=row.done,
            moved=int(row.moved.timestamp()),
            begun=int(row.begun.timestamp()),
            begun_by=row.begun_by,
            replaced=replaced,
        )

    return keep_valid(GrowthPlan.objects.filter(ended=None).order_by("pool_guid"), make, "growth")


def read_bays() -> Iterator[Any]:
    rows = BayRow.objects.order_by("port")
    return keep_valid(rows, lambda row: BayChoice(port=row.port, position=row.position, label=row.label), "bays")


def read_pages() -> Iterator[Any]:
    def make(row: Preferences) -> PageChoice:
        return PageChoice(
            user=row.user.get_username(),
            units=row.units,  # type: ignore[arg-type]
            language=row.language,
            show_commands=row.show_commands,
        )

    return keep_valid(Preferences.objects.select_related("user").order_by("pk"), make, "pages")


def read_snapshots() -> Iterator[Any]:
    def make(row: MadeSnapshot) -> LedgerEntry:
        return LedgerEntry(
            dataset=row.dataset_key,
            guid=row.guid,
            grains=row.grains,
            until=seconds_of(row.until),
            at=seconds_of(row.at),
        )

    return keep_valid(MadeSnapshot.objects.order_by("-pk")[: box_settings.GROUPS["snapshots"][1]], make, "snapshots")


READERS: dict[str, Callable[[], Iterator[Any]]] = {
    "box": read_box,
    "notifications": read_notifications,
    "levels": read_levels,
    "accepted": read_accepted,
    "disks": read_disks,
    "self_tests": read_self_tests,
    "care": read_care,
    "price": read_price,
    "growth": read_growth,
    "bays": read_bays,
    "pages": read_pages,
    "snapshots": read_snapshots,
}
