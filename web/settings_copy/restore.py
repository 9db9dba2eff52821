"""Write groups of settings that somebody has chosen to the settings database, all or none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from appliance.recovery import mail_password
from appliance.recovery.settings_entries import Notifications
from web import language
from web.accounts.models import Preferences
from web.alerts import reconcile, smtp_password
from web.alerts.models import Accepted, DiskCare, MailSettings, SelfTestPlan
from web.disks.models import BayRow
from web.inventory import store
from web.pools.models import CareSchedule, DiskPrice, GrowthPlan
from web.settings_copy.current import MAIL_FIELDS, RECIPIENTS
from web.settings_copy.offers import GroupOffer
from web.snapshots.models import MadeSnapshot

TRUSTED = ("host", "port", "security", "authority")  # by these the box knows the server that gets its password


def bring_back(groups: Iterable[GroupOffer], *, by: str, box: str, own: bool) -> int:
    """Write these groups; how many entries that were. ``own``: they are those of this very box."""
    chosen = list(groups)
    mail = next((one.entries[0] for one in chosen if one.group == "notifications"), None)
    former = MailSettings.load_row()
    with transaction.atomic():
        for one in chosen:
            WRITERS[one.group](one.entries, by)
    if mail:
        settle_password(mail, former, box=box, own=own)
    for name in ("alerts", "disks", "pools", "snapshots"):
        store.touch(name)
    return sum(one.count for one in chosen)


def settle_password(mail: Notifications, former: MailSettings, *, box: str, own: bool) -> None:
    """Use the password that came with the record; one that is stored here is never sent to another server, nor to one
    that proves itself in another way."""
    left = mail_password.left_file(box)
    try:
        password = left.read_text()
    except OSError:
        password = ""
    if password:
        smtp_password.store_password(password)
        left.unlink(missing_ok=True)
    elif any(getattr(mail, name) != getattr(former, name) for name in TRUSTED) and (former.host or not own):
        smtp_password.store_password("")


def at_moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def moment(seconds: int | None) -> datetime | None:
    return at_moment(seconds) if seconds is not None else None


def write_box(entries: tuple[Any, ...], _by: str) -> None:
    (one,) = entries
    language.set_language_of_box(one.language)


def write_notifications(entries: tuple[Any, ...], _by: str) -> None:
    (one,) = entries
    row = MailSettings.load_row()
    for name in MAIL_FIELDS:
        setattr(row, name, getattr(one, name))
    for name in RECIPIENTS:
        setattr(row, name, "\n".join(getattr(one, name)))
    row.save()


def write_levels(entries: tuple[Any, ...], by: str) -> None:
    for one in entries:
        reconcile.set_severity(one.kind, one.severity, timezone.now(), by)


def write_accepted(entries: tuple[Any, ...], by: str) -> None:
    for one in entries:
        Accepted.objects.update_or_create(
            disk=one.disk, count=one.count, defaults={"value": one.value, "by": one.by or by}
        )


def write_disks(entries: tuple[Any, ...], _by: str) -> None:
    for one in entries:
        choice = {"tested": one.tested, "sleep": one.sleep, "told": ""}
        DiskCare.objects.update_or_create(
            disk=one.disk, defaults=choice, create_defaults={**choice, "since": timezone.now()}
        )


def write_self_tests(entries: tuple[Any, ...], _by: str) -> None:
    (one,) = entries
    SelfTestPlan(pk=1, short=one.short, long=one.long, first=one.first, last=one.last).save()


def write_care(entries: tuple[Any, ...], _by: str) -> None:
    for one in entries:
        choice = {"every": one.every, "first": one.first, "last": one.last, "inside": one.inside}
        CareSchedule.objects.update_or_create(pool_key=one.pool, kind=one.kind, defaults=choice)


def write_price(entries: tuple[Any, ...], _by: str) -> None:
    (one,) = entries
    DiskPrice(pk=1, per_tb=Decimal(one.per_tb), currency=one.currency).save()


def write_growth(entries: tuple[Any, ...], by: str) -> None:
    for one in entries:
        GrowthPlan.objects.create(
            pool_guid=one.pool_guid,
            pool=one.pool,
            size=one.size,
            targets=[list(pair) for pair in one.targets],
            replaced=[list(place) for place in one.replaced],
            done=one.done,
            moved=at_moment(one.moved),
            begun=at_moment(one.begun),
            begun_by=one.begun_by or by,
        )


def write_bays(entries: tuple[Any, ...], _by: str) -> None:
    for one in entries:
        BayRow.objects.update_or_create(port=one.port, defaults={"position": one.position, "label": one.label})


def write_pages(entries: tuple[Any, ...], _by: str) -> None:
    for one in entries:
        user = get_user_model().objects.get(username=one.user)
        choice = {"units": one.units, "language": one.language, "show_commands": one.show_commands}
        Preferences.objects.update_or_create(user=user, defaults=choice)


def write_snapshots(entries: tuple[Any, ...], _by: str) -> None:
    rows = [
        MadeSnapshot(
            dataset_key=one.dataset, guid=one.guid, grains=one.grains, until=moment(one.until), at=moment(one.at)
        )
        for one in reversed(entries)  # the newest was recorded last
    ]
    MadeSnapshot.objects.bulk_create(rows, ignore_conflicts=True, batch_size=200)


WRITERS: dict[str, Callable[[tuple[Any, ...], str], None]] = {
    "box": write_box,
    "notifications": write_notifications,
    "levels": write_levels,
    "accepted": write_accepted,
    "disks": write_disks,
    "self_tests": write_self_tests,
    "care": write_care,
    "price": write_price,
    "growth": write_growth,
    "bays": write_bays,
    "pages": write_pages,
    "snapshots": write_snapshots,
}
