"""Collectors put facts in here; operations get them out again as one value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import connections, transaction
from django.db.models import F, Q
from django.utils import timezone
from msgspec.structs import replace as changed_copy

from appliance.disks import probe
from appliance.errors import LarderError
from appliance.facts.box import Facts, Use
from appliance.facts.box_record import parse_record
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import SmbPolicy
from appliance.message import PlainText
from appliance.operation import Operation
from web import agent
from web.inventory.dataset_models import BookmarkRow, DatasetDetailRow, DatasetRow, SnapshotRow
from web.inventory.fact_row import (
    LookUp,
    OddRow,
    Row,
    RowWithSaidFacts,
    facts_of,
    look_up_or_none,
    look_up_strictly,
    readable_rows,
)
from web.inventory.models import (
    AccountRow,
    DetailRow,
    DiskRow,
    GroupRow,
    ImportableRow,
    ImportRow,
    PolicyRow,
    PoolRow,
    PropertiesRow,
    ReceiverRow,
    RemoteRow,
    SessionRow,
    ShareRow,
    Source,
)
from web.said import said_in

SECONDS_TO_READ = 90


def replace(model: type[Row], found: Iterable[Any], key: Callable[[Any], str], **columns: Callable[[Any], Any]) -> bool:
    """Make the table say exactly what was found, touching only rows that differ; whether anything did.
    ``columns``: further ones beside those of the model."""
    made = {**model.columns, **columns}
    wanted: dict[str, Row] = {}
    said = ["said_of_facts"] if issubclass(model, RowWithSaidFacts) else []
    for fact in found:
        plain = PlainText()
        row = model(
            key=key(fact),
            name=getattr(fact, "name", "") or getattr(fact, "unit", ""),
            facts=msgspec.json.encode(fact, enc_hook=plain).decode(),
        )
        if isinstance(row, RowWithSaidFacts):
            row.said_of_facts = plain.said
        for column, value in made.items():
            setattr(row, column, value(fact))
        wanted[row.key] = row
    table = model._default_manager.using("inventory")
    with transaction.atomic(using="inventory"):
        known = dict(table.values_list("key", "facts"))
        changed = [row for name, row in wanted.items() if known.get(name) != row.facts]
        gone = set(known) - set(wanted)
        if changed:
            table.bulk_create(
                changed,
                update_conflicts=True,
                unique_fields=["key"],
                update_fields=["name", "facts", *said, *made],
                batch_size=500,
            )
        for start in range(0, len(gone_list := sorted(gone)), 500):
            table.filter(key__in=gone_list[start : start + 500]).delete()
    return bool(changed or gone)


# One statement instead of four queries that the ORM composes: a reading of everything notes twenty sources.
NOTE_CHECKED = """
INSERT INTO inventory_source (name, checked, error, said, seconds, version) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (name) DO UPDATE SET checked = excluded.checked, error = excluded.error, said = excluded.said, seconds = excluded.seconds,
    version = version + (%s OR error <> excluded.error)
"""


def checked(name: str, *, changed: bool, seconds: float = 0, error: str = "", at: datetime | None = None) -> None:
    """Note that a source was read now, or at the time given.
    Its version moves when what it said, or its error, has changed."""
    inventory = connections["inventory"]
    when = inventory.ops.adapt_datetimefield_value(at or timezone.now())
    with inventory.cursor() as cursor:
        said = json.dumps(said_in(error))
        cursor.execute(NOTE_CHECKED, [name, when, str(error), said, seconds, changed or error != "", changed])


def note_duration(name: str, seconds: float) -> None:
    """Note how long the reading took that ``claim_refresh`` asks for."""
    Source.objects.filter(name=name).update(seconds=seconds)


def touch(name: str) -> None:
    """Move the version of a source that is written elsewhere (jobs and their progress)."""
    if not Source.objects.filter(name=name).update(version=F("version") + 1):
        Source.objects.get_or_create(name=name, defaults={"version": 1})


def is_read(name: str) -> bool:
    """Whether a source has been read, and the last time without trouble."""
    return Source.objects.filter(name=name, error="").exclude(checked=None).exists()


def claim_refresh(name: str, *, not_since: datetime) -> bool:
    """Whether this caller is the one to ask for a new reading: true once per interval, for all callers together.

    Where a reading takes long, as on a slow box, the interval is twice as long: pages that are looked at leave half of
    the time to what people wait for. What was asked for by a clock that was ahead does not count.
    """
    source, _made = Source.objects.get_or_create(name=name)
    table = Source.objects.filter(name=name)
    now = timezone.now()
    not_since = min(not_since, now - timedelta(seconds=2 * source.seconds))
    fresh = Q(requested__gte=not_since, requested__lte=now + timedelta(minutes=1))
    return bool(table.filter(Q(requested=None) | ~fresh).update(requested=now))


def history_source(pool_key: str) -> str:
    """The name under which reading a pool's history is noted."""
    return f"history-{pool_key}"[:40]


def dataset_source(key: str) -> str:
    """The name under which reading a dataset's details is noted."""
    return f"looking-dataset-{key}"[:40]


def facts(odd: list[Row] | None = None) -> Facts:
    """What the inventory says, for checking and planning in a page. A constant number of queries.

    Rows that cannot be decoded are left out, and put into ``odd``: ``facts_for`` refuses where they matter.
    The agent, which reads everything itself, has the last word.
    """

    def read(rows: Iterable[Row]) -> tuple[Any, ...]:
        kept = list(rows)
        found = readable_rows(kept)
        if odd is not None and len(found) < len(kept):
            known = {row.pk for row, _fact in found}
            odd.extend(row for row in kept if row.pk not in known)
        return tuple(fact for _row, fact in found)

    missing = Source.objects.filter(name="zfs").exclude(error="").exists()
    return Facts(
        pools=read(PoolRow.objects.order_by("name")),
        datasets=read(DatasetRow.objects.order_by("name")),
        disks=read(DiskRow.objects.order_by("key")),
        accounts=read(AccountRow.objects.order_by("name")),
        groups=read(GroupRow.objects.order_by("name")),
        zfs="missing" if missing else "present",
        shares=read(ShareRow.objects.order_by("name")),
        importable=read(ImportableRow.objects.order_by("name")),
        details=read(DetailRow.objects.all()),
        sessions=read(SessionRow.objects.order_by("key")),
        properties=read(PropertiesRow.objects.order_by("name")),
        dataset_details=read(DatasetDetailRow.objects.all()),
        smb_policy=next(iter(read(PolicyRow.objects.all())), SmbPolicy()),
        remotes=read(RemoteRow.objects.order_by("name")),
        receivers=read(ReceiverRow.objects.order_by("name")),
        imports=read(ImportRow.objects.order_by("name")),
    )


def refuse_odd(operation: Operation, odd: Iterable[Row]) -> None:
    """Raise OddRow where one of these rows is of something that the operation is about, or
    takes away with what is above."""
    said, taken = set(words_of(msgspec.to_builtins(operation))), operation.files_taken()
    for row in odd:
        own = {row.key, row.name, f"/dev/disk/by-id/{row.key}"} - {""}
        places = isinstance(row, PoolRow | DatasetRow)
        above = tuple(f"{row.name}{mark}" for mark in "/@#") if places else ()
        below = places and any(row.name.startswith(f"{top}/" if top else "") for top in taken)
        if below or not said.isdisjoint(own) or any(word.startswith(above) for word in said):
            raise OddRow(row.label or operation.subject)


def words_of(value: Any) -> Iterator[str]:
    """Every text and number in what an operation says: names, guids, paths of disks."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from words_of(one)
    elif isinstance(value, str | int):
        yield str(value)


def top_datasets(names: Iterable[str], look_up: LookUp = look_up_strictly) -> dict[str, Dataset]:
    """The top dataset of each pool, in one query."""
    return {fact.name: fact for fact in facts_of(DatasetRow.objects.filter(name__in=list(names)), look_up)}


def stopped_pools() -> set[str]:
    """Names of pools that must not be asked or changed, because the caller would wait for their disks. One query.
    A pool whose row cannot be decoded is one of them until it is read again."""
    rows = list(PoolRow.objects.all())
    running = {pool.name for pool in facts_of(rows, look_up_or_none) if pool.state != "SUSPENDED"}
    return {row.name for row in rows} - running


def facts_of_pools(look_up: LookUp = look_up_or_none) -> Facts:
    """Only the pools, the top dataset of each, and the disks: what is looked at every few
    seconds does not read every folder.

    A row that cannot be decoded is left out, so that work on the others goes on.
    The agent, which reads everything itself, has the last word on what changes the box.
    """
    pools = tuple(facts_of(PoolRow.objects.order_by("name"), look_up))
    return Facts(
        pools=pools,
        datasets=tuple(top_datasets((pool.name for pool in pools), look_up).values()),
        disks=tuple(facts_of(DiskRow.objects.order_by("key"), look_up)),
    )


def facts_for(operation: Operation) -> Facts:
    """The same, with snapshots and bookmarks of the datasets that the operation is about. Two queries more where it is.
    Raises OddRow where something that it is about cannot be decoded.

    Of disks that are to be taken and look empty the agent tells what they hold, as it will look again before it begins.
    """
    odd: list[Row] = []
    known = facts(odd)
    refuse_odd(operation, odd)
    found = read_box_record(read_disks(known, operation.disks_taken()), *operation.record_read())
    datasets = operation.snapshot_datasets()
    if not datasets:
        return found
    rows = SnapshotRow.objects.filter(dataset__in=datasets).order_by("dataset", "txg")
    marks = BookmarkRow.objects.filter(dataset__in=datasets).order_by("dataset", "short")
    return changed_copy(found, snapshots=tuple(row.fact for row in rows), bookmarks=tuple(row.fact for row in marks))


def read_box_record(found: Facts, pool: str, box: str) -> Facts:
    """The facts with the record of a box as the agent reads it; as they are where it cannot,
    which the operation says."""
    if not pool:
        return found
    try:
        answer = agent.last({"verb": "read-box-record", "pool": pool, "box": box}, silence=SECONDS_TO_READ)["facts"]
        return changed_copy(found, box_record=parse_record(json.dumps(answer).encode()))
    except LarderError:
        return found


def read_disks(found: Facts, paths: Iterable[str]) -> Facts:
    """The facts with what the agent reads on those of the disks that look empty; as they are
    where it cannot be asked."""
    empty = [path for path in paths if (disk := found.disk(path)) and disk.free]
    if not empty:
        return found
    try:
        answer = agent.last({"verb": "read-content", "disks": empty}, silence=SECONDS_TO_READ).get("facts", {})
        return probe.with_uses(found, msgspec.convert(answer, dict[str, Use]))
    except (LarderError, msgspec.ValidationError):
        return found
