"""Destroy received copies that are no longer kept, and find the boxes that no longer bring any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from operator import attrgetter

import msgspec
from django.utils import timezone
from msgspec.structs import replace

from appliance import agent_client, schedule
from appliance.alerts.fault import Fault, Space
from appliance.backups.pairing.prune_received import CopiesInUse, PruneReceived
from appliance.backups.retention import expired_received
from appliance.facts.copy_mark import is_continued
from appliance.facts.datasets import Dataset, Snapshot
from appliance.facts.receiver import Receiver
from appliance.formatting import moment_text, size_text
from appliance.message import Message
from appliance.snapshots.destroy import MOST, Chosen
from web.backups import received
from web.inventory import store
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.inventory.fact_row import LookUp, facts_of, look_up_strictly, readable_facts
from web.inventory.models import ReceiverRow
from web.jobs import confirm
from web.jobs.models import BY_SCHEDULE, Job
from workers import guard, snapshot_policies
from workers.interval import Interval

KIND = "prune-received"
NOTHING = CopiesInUse()
looks = Interval(300.0)


def prune_received() -> None:
    """Start a job for each pairing whose retention lets snapshots go. What is decided here the agent decides again."""
    if not all(store.is_read(name) for name in ("receivers", "datasets", "snapshots")):
        return
    kept = [one for one in readable_facts(ReceiverRow.objects.order_by("name")) if one.keep is not None]
    if not kept:
        return
    now, stopped = timezone.now(), store.stopped_pools()
    mine = Job.objects.filter(kind=KIND)
    busy = set(mine.filter(state__in=Job.OPEN).values_list("subject", flat=True))
    busy |= {subject for _kind, subject in snapshot_policies.resting_kinds(mine, now)}
    ready = [one for one in kept if one.root not in busy and one.root.partition("/")[0] not in stopped]
    guard.for_each(ready, lambda one: start_prune(one, now), label=lambda one: one.name)


def start_prune(receiver: Receiver, now: datetime) -> Job | None:
    if not DatasetRow.objects.filter(name=receiver.root, key=str(receiver.guid)).exists():
        return None
    if not find_expired(receiver, now):
        return None
    with guard.refusals_logged(f"pruning the copies in {receiver.root}"):
        expired = find_expired(receiver, now, read_in_use(receiver))
        if not expired:
            return None  # all of it is in use: a copy may take days to arrive
        chosen = tuple(Chosen(one.name, one.guid) for one in expired)
        operation = PruneReceived(receiver=receiver.id, snapshots=chosen)
        return confirm.start_without_review(operation, user=BY_SCHEDULE)
    return None


def read_in_use(receiver: Receiver) -> CopiesInUse:
    """What has to stay for now: this process sees neither those of another user nor what a token says.
    Raises Refused, Failed."""
    request = {"verb": "read-copies-in-use", "receiver": receiver.id}
    return msgspec.convert(agent_client.send_request(request, silence=180).get("facts", {}), CopiesInUse)


def find_expired(receiver: Receiver, now: datetime, in_use: CopiesInUse = NOTHING) -> list[Snapshot]:
    """What the retention lets go and nothing uses, as far as the inventory tells, of one folder after the other: a
    sender may have sent very many snapshots."""
    if receiver.keep is None:
        return []
    below = f"{receiver.root}/"
    rows: list[Dataset] = readable_facts(DatasetRow.objects.filter(name__startswith=below))
    copies = {one.name for one in rows if one.name.startswith(below) and is_continued(one.copy_of)}
    zone, found = schedule.box_zone(), list[Snapshot]()
    snapshots = SnapshotRow.objects.filter(dataset__startswith=below).order_by("dataset").iterator()
    for name, known in groupby(snapshots, key=attrgetter("dataset")):
        if name in copies and name not in in_use.copies:
            expired = expired_received([row.fact for row in known], receiver.keep, now, zone, in_use.needed)
            found += expired[: MOST - len(found)]
        if len(found) == MOST:
            break
    return found


# --- alerts -----------------------------------------------------------------------------------------------------------
def received_faults(now: datetime) -> Iterator[Fault]:
    """A fault for each box that was not here for longer than agreed, and for each folder
    whose limit is nearly used up."""
    for one in received.read_all(now):
        receiver, link = one.receiver, f"/backups/receiving/{one.receiver.id}/"
        if one.is_silent and one.last_here:
            last = moment_text(one.last_here.astimezone(schedule.box_zone()))
            yield Fault(
                "received.silent",
                receiver.id,
                Message("{box} has not connected for more than {days} days.", box=receiver.name, days=receiver.days),
                Message("It last connected on {last}.", last=last),
                link,
            )
        if one.is_nearly_full and one.folder:
            yield Fault(
                "received.full",
                receiver.id,
                Message(
                    "The copies of {box} use {percent} % of their limit.", box=receiver.name, percent=one.limit_percent
                ),
                Message("{free} are free in {root}.", free=size_text(one.folder.available), root=receiver.root),
                link,
            )


def with_senders(spaces: Iterable[Space], look_up: LookUp = look_up_strictly) -> tuple[Space, ...]:
    """The same, each with a sentence on the boxes whose copies lie in that pool. One query."""
    names: dict[str, list[str]] = defaultdict(list)
    for one in facts_of(ReceiverRow.objects.order_by("name"), look_up):
        if one.public_key:
            names[one.root.partition("/")[0]].append(one.name)
    return tuple(replace(one, received=senders_text(names[one.pool])) if one.pool in names else one for one in spaces)


def senders_text(boxes: list[str]) -> str:
    return Message("Copies from {boxes} are received here, and stop when it is full.", boxes=", ".join(boxes))
