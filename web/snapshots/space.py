"""Space used by a folder's snapshots: the ranges for ZFS to measure, and the results as lines of a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.db.models import Q, Sum
from django.utils.translation import gettext

from appliance.snapshot_names import GRAINS
from appliance.snapshots import space
from appliance.snapshots.hold_clone import hold_text
from appliance.snapshots.policy import WORDS
from appliance.snapshots.space import Pair
from web.inventory.dataset_models import DatasetRow, SnapshotReading, SnapshotRow
from web.inventory.fact_row import readable_facts
from web.snapshots.models import MadeSnapshot
from web.translation import lazy_text, text_of

AGES = (
    (365, lazy_text("a year")),
    (90, lazy_text("three months")),
    (30, lazy_text("a month")),
    (7, lazy_text("a week")),
)
STALE = timedelta(days=60)


class SpaceLine(msgspec.Struct, frozen=True):
    """The space that destroying some snapshots frees; ``least``: at least, since not all are neighbours."""

    words: str
    count: int
    size: int
    least: bool = False


class Hold(msgspec.Struct, frozen=True):
    row: SnapshotRow
    why: str
    since: datetime
    stale: bool


def snapshot_groups(every: Sequence[SnapshotRow], key: str, now: datetime) -> Iterator[tuple[str, list[SnapshotRow]]]:
    """The groups of snapshots that a user may want to destroy together, with their labels."""
    yield gettext("All snapshots"), list(every)
    for days, words in AGES:
        if older := [row for row in every if row.created < now - timedelta(days=days)]:
            yield gettext("All older than {words}").format(words=words), older
    made = {record.guid: record.grains.split(",") for record in MadeSnapshot.objects.filter(dataset_key=key)}
    if own := [row for row in every if row.guid in made]:
        yield gettext("All automatic snapshots"), own
    for grain in GRAINS:
        # A snapshot that serves several grains stays for the others.
        if only := [row for row in every if made.get(row.guid) == [grain]]:
            yield gettext("Those taken {words}").format(words=text_of(WORDS[grain])), only
    if by_hand := [row for row in every if row.guid not in made]:
        yield gettext("Those not taken automatically on this box"), by_hand


def held_in(pool: str) -> int:
    """Bytes that only the snapshots of a pool use, not its folders. One query."""
    readings = SnapshotReading.objects.filter(Q(dataset=pool) | Q(dataset__startswith=f"{pool}/"))
    return readings.aggregate(held=Sum("used"))["held"] or 0


class PoolSpace(msgspec.Struct, frozen=True):
    """Bytes that the snapshots of a pool use, and all bytes used in it."""

    name: str
    held: int
    used: int


def pool_spaces() -> Iterator[PoolSpace]:
    """The pools whose snapshots use space, by name. Two queries."""
    held: dict[str, int] = defaultdict(int)
    for dataset, size in SnapshotReading.objects.filter(used__gt=0).values_list("dataset", "used"):
        held[dataset.split("/", 1)[0]] += size
    for top in readable_facts(DatasetRow.objects.filter(name__in=sorted(held)).order_by("name")):
        yield PoolSpace(top.name, held[top.name], top.used)


def pairs_of(every: Sequence[SnapshotRow], wanted: Collection[str]) -> list[Pair]:
    """The first and last of each run of neighbours among the snapshots with these guids."""
    return [(run[0].name, run[-1].name) for run in space.split_runs(every, lambda row: row.guid in wanted)]


def build_question(
    every: Sequence[SnapshotRow], key: str, now: datetime
) -> tuple[list[tuple[str, int, list[Pair]]], list[str]]:
    """The groups with their runs of neighbours, as many as may be measured at once, and the names of held snapshots."""
    found, left = [], space.MOST_RANGES
    for words, members in snapshot_groups(every, key, now):
        pairs = pairs_of(every, {row.guid for row in members})
        if len(pairs) <= left:
            left -= len(pairs)
            found.append((words, len(members), pairs))
    return found, [row.name for row in every if row.holds][: space.MOST_HELD]


def space_lines(asked: Iterable[tuple[str, int, list[Pair]]], sizes: Iterable[int | None]) -> Iterator[SpaceLine]:
    """The measured sizes as lines, in the order of the groups, without groups of which a snapshot is missing."""
    rest = iter(sizes)
    for words, count, pairs in asked:
        own = [next(rest, None) for _pair in pairs]
        known = [size for size in own if size is not None]
        if len(known) == len(own):
            yield SpaceLine(words, count, sum(known), least=len(own) > 1)


def list_holds(every: Iterable[SnapshotRow], found: dict[str, dict[str, Any]], now: datetime) -> Iterator[Hold]:
    """The holds, oldest first, with who set them and why. An old hold may have been forgotten."""
    found_holds = [
        Hold(row, hold_text(tag), at := datetime.fromtimestamp(int(since), UTC), now - at > STALE)
        for row in every
        for tag, since in found.get(row.name, {}).items()
    ]
    yield from sorted(found_holds, key=lambda hold: hold.since)
