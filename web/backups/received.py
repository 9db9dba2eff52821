"""What lies here of other Larders: how much, how old, how long it stays, and when they last were here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec
from django.db.models import Q
from django.utils.translation import gettext

from appliance.backups.pairing.set_retention import silent_since
from appliance.facts.datasets import Dataset
from appliance.facts.receiver import Receiver
from appliance.pools import fullness
from web.backups import status
from web.inventory.dataset_models import DatasetRow, SnapshotReading
from web.inventory.fact_row import readable_facts
from web.inventory.models import ReceiverRow


class ReceivedCopy(msgspec.Struct, frozen=True):
    """One folder of another box. ``newest``: None where no copy of it is complete, or its age cannot be told."""

    dataset: Dataset
    newest: datetime | None
    snapshots: int
    at_top: bool


class ReceivedCopies(msgspec.Struct, frozen=True):
    """Another Larder and what lies here of it. ``folder``: None where it is not on a connected pool."""

    receiver: Receiver
    folder: Dataset | None
    now: datetime
    copies: tuple[ReceivedCopy, ...] = ()
    limit_percent: int = 0  # of the limit of its folder that is used; 0: it has none

    @property
    def waits(self) -> bool:
        """Whether a code was shown that can still be typed."""
        until = self.receiver.code_until
        return not self.receiver.public_key and until is not None and self.now < until

    @property
    def newest(self) -> datetime | None:
        return max((one.newest for one in self.copies if one.newest), default=None)

    @property
    def snapshots(self) -> int:
        return sum(one.snapshots for one in self.copies)

    @property
    def last_here(self) -> datetime | None:
        return silent_since(self.receiver, self.newest, self.now)

    @property
    def is_silent(self) -> bool:
        """Whether it has not connected for longer than its owner wants to know of."""
        last, days = self.last_here, self.receiver.days
        return last is not None and days > 0 and self.now - last > timedelta(days=days)

    @property
    def is_nearly_full(self) -> bool:
        return self.limit_percent >= fullness.WARNING

    @property
    def state(self) -> str:
        if not self.receiver.public_key:
            return "working" if self.waits else "attention"
        return "healthy" if self.folder and not self.is_silent and not self.is_nearly_full else "attention"

    @property
    def word(self) -> str:
        if not self.receiver.public_key:
            return gettext("waiting for the code") if self.waits else gettext("not paired yet")
        if not self.folder:
            return gettext("folder missing")
        if self.is_nearly_full:
            return gettext("nearly full")
        return gettext("not connected lately") if self.is_silent else gettext("paired")


def read_all(now: datetime) -> list[ReceivedCopies]:
    """Every pairing; one query where there is none."""
    receivers: list[Receiver] = readable_facts(ReceiverRow.objects.order_by("name"))
    return list(received(receivers, now)) if receivers else []


def received(receivers: Iterable[Receiver], now: datetime) -> Iterator[ReceivedCopies]:
    """Three queries for all of them, and one more for each 500 copies."""
    receivers = list(receivers)
    tops = {one.root.partition("/")[0] for one in receivers}
    places, counts = Q(name__in=tops), Q(pk__in=[])
    for one in receivers:
        places |= Q(name=one.root) | Q(name__startswith=f"{one.root}/")
        counts |= Q(dataset__startswith=f"{one.root}/")
    known: dict[str, Dataset] = {
        fact.name: fact for fact in readable_facts(DatasetRow.objects.filter(places).order_by("name"))
    }
    snapshots = dict(SnapshotReading.objects.filter(counts).values_list("dataset", "count"))
    newest = status.newest_copies((name for name in known if name not in tops), now)
    for receiver in receivers:
        below = f"{receiver.root}/"
        copies = tuple(
            ReceivedCopy(
                found, known_age(newest.get(name)), snapshots.get(name, 0), "/" not in name.removeprefix(below)
            )
            for name, found in known.items()
            if name.startswith(below)
        )
        root, top = known.get(receiver.root), known.get(receiver.root.partition("/")[0])
        yield ReceivedCopies(receiver, root, now, copies if root else (), limit_percent(root, top))


def known_age(newest: datetime | None) -> datetime | None:
    return None if newest == status.AGE_UNKNOWN else newest


def limit_percent(root: Dataset | None, top: Dataset | None) -> int:
    """How much of its limit a folder uses, in per cent; 0 where it may use as much as its pool has."""
    if root is None or top is None or root.available >= top.available:
        return 0
    return fullness.percent_used(root.used, root.used + root.available)
