"""Keep the records of this box on its pools up to date: hand the settings to the agent, and
write once a day what changed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from appliance.datasets.encryption import key_store
from appliance.errors import Failed, Refused
from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool
from appliance.message import Message
from appliance.recovery import records
from appliance.recovery.write_record import WriteRecord
from appliance.zfs import vdev_tree
from web.accounts import first_run
from web.alerts.models import PoolDay
from web.inventory import store
from web.inventory.fact_row import readable_facts
from web.inventory.models import DiskRow
from web.jobs import confirm
from web.jobs.models import BY_SCHEDULE
from web.settings_copy import hand_over

log = logging.getLogger(__name__)
EVERY = timedelta(days=1)


def record_settings(now: datetime) -> bool:
    """Hand over the settings, and begin to write the records that are due; whether one was begun. Raises Failed."""
    if not first_run.is_set_up() or not store.is_read("pools") or not store.is_read("datasets"):
        return False
    try:
        kept = hand_over.hand_over()
    except Failed as failure:  # an agent that does not answer has an alert of its own
        log.warning("the settings were not handed over for the records: %s", failure)
        return False
    if not kept.kept:
        raise Failed(
            Message("The records of this box have the settings that it had before its settings were lost"),
            Message("On the page Recovery bring them back, or choose to keep today's settings."),
        )
    begun = [pool for pool in due_pools(store.facts_of_pools(), kept.written, now) if begin(pool)]
    return bool(begun)


def begin(pool: Pool) -> bool:
    """Start writing the record to a pool; whether nothing spoke against it."""
    try:
        confirm.start_without_review(WriteRecord.of(pool), user=BY_SCHEDULE)
    except Refused as refusal:
        log.info("no record of this box is written to %s: %s", pool.name, refusal)
        return False
    return True


def due_pools(facts: Facts, written: int, now: datetime) -> Iterator[Pool]:
    """The pools whose record is older than the settings and than a day.

    A pool without one gets its first on the day after it came, and not while another box calls it its own.
    No disk is woken.
    """
    own = key_store.box_mark()
    asleep = {disk.path for disk in readable_facts(DiskRow.objects.filter(asleep=True))}
    days = PoolDay.objects.filter(day__lt=now.date()).values_list("guid", flat=True)
    known = set(days.distinct())
    for pool in facts.pools:
        if pool.state not in vdev_state.WORKING or is_asleep(pool, asleep):
            continue
        if (top := facts.dataset(pool.name)) is None:  # whose record is in it is not known
            continue
        marks = records.marks_of(top)
        mark = marks.find(own)
        if mark is None:
            of_others = any(not one.by for one in marks.boxes)
            due = str(pool.guid) in known and not of_others
        else:
            age = now - datetime.fromtimestamp(mark.at, UTC)
            due = not mark.by and mark.at < written and not timedelta() <= age < EVERY
        if due:
            yield pool


def is_asleep(pool: Pool, asleep: set[str]) -> bool:
    """Whether a disk of the pool sleeps, which writing would wake."""
    return any(vdev_tree.disk_path(device) in asleep for device in pool.devices())
