"""Find scheduled work that was not done: scrubs and automatic snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from appliance import schedule
from appliance.alerts.fault import Fault
from appliance.facts.box import Facts
from appliance.formatting import day_text, moment_text, names_text
from appliance.message import Message
from appliance.pools import maintenance_schedule
from appliance.snapshots.policy import AHEAD, next_opening, overdue_grains, unchanged_snapshot
from web.alerts import reconcile
from web.inventory import store
from web.inventory.fact_row import LookUp, look_up_strictly
from web.pools import maintenance
from workers import backups, clock, received_copies, unrecorded_snapshots
from workers.alerts import pending_faults
from workers.interval import Interval
from workers.snapshot_policies import datasets_due, datasets_with_policies

AFTER = timedelta(days=14)  # beyond when it should have begun: a large pool takes its days
SNAPSHOT_AFTER = timedelta(hours=1)  # a policy that failed is tried again after 10 and 30 minutes
MOST_NAMED = 5


def update_overdue(facts: Facts, now: datetime, look_up: LookUp = look_up_strictly) -> Iterator[Fault]:
    """Look for overdue work, note since when it waits, and yield its faults.
    With another ``look_up`` each kind is looked for by itself."""
    shift = clock.clock_shift()
    kinds: tuple[tuple[str, Callable[[], Iterable[Fault]]], ...] = (
        (Message("scrubs"), lambda: tuple(overdue_scrubs(facts, now))),
        (Message("snapshots"), lambda: tuple(snapshots.update_faults(facts, now + shift))),
        (Message("snapshots without a record"), lambda: tuple(unrecorded_snapshots.unrecorded.update_faults())),
        (Message("backups"), lambda: tuple(backups.backup_faults(now))),
        (Message("received copies"), lambda: tuple(received_copies.received_faults(now))),
    )
    for name, look in kinds:
        yield from look_up(name, look) or ()
    if shift and datasets_with_policies():
        believed = moment_text((now + shift).astimezone(schedule.box_zone()))
        yield Fault(
            "clock.doubted",
            "clock",
            Message("The clock may be wrong."),
            Message(
                "Going by the box's uptime, it must be at least {believed}. Snapshots use that time. Check "
                "the clock on the System page.",
                believed=believed,
            ),
        )
    elif clock.network_clock.is_unset():
        yield Fault(
            "clock.unset",
            "clock",
            Message("The clock has not been set from the network for a day."),
            Message("No time server has answered since the box was started, or none is asked."),
            "/system/",
        )


def overdue_scrubs(facts: Facts, now: datetime) -> Iterator[Fault]:
    """A fault for each pool whose scrub is overdue and does not run. A scrub that a user paused is not overdue."""
    for pool, found, _row in maintenance.pool_cares(facts, "scrub", now):
        if not found.usable or found.state == "running" or found.held:
            continue
        due = maintenance_schedule.due_on(found, now, schedule.box_zone())
        if due and due < (now - AFTER).date():
            last = (
                Message("The last one ended on {day}.", day=day_text(found.ended))
                if found.ended
                else Message("It has never been scrubbed.")
            )
            yield Fault(
                "scrub.overdue",
                str(pool.guid),
                Message("{name} was not scrubbed in time.", name=pool.name),
                last,
                f"/pools/{pool.guid}/",
            )


class OverdueSnapshots:
    """Folders whose snapshot schedule missed a snapshot, one fault per pool.

    What was taken is read anew every few minutes, as that is many rows. Since when a folder waits is kept beside the
    rows (``pending_faults.py``): that it has changed, or follows a policy, is nowhere written with a time.
    """

    def __init__(self, seconds: float = 300.0) -> None:
        self.looks = Interval(seconds)
        self.late: dict[str, list[str]] = {}

    def update_faults(self, facts: Facts, now: datetime) -> Iterator[Fault]:
        """One fault for each pool in which snapshots were missed. A pool that has stopped is told as that."""
        # Where they cannot be read nothing is taken either, which is told as what is not read.
        if store.is_read("snapshots"):
            self.looks.take_turn(lambda: self.refresh_late(facts, now))
        for pool in facts.pools:
            names = self.late.get(pool.name, [])
            if names and pool.state != "SUSPENDED":
                yield Fault(
                    "policy.overdue",
                    str(pool.guid),
                    Message("{name}: snapshots were not taken.", name=pool.name),
                    Message("A snapshot of {names} was due.", names=names_text(names, MOST_NAMED)),
                    "/jobs/",
                    len(names),
                )

    def refresh_late(self, facts: Facts, now: datetime) -> None:
        """Find the folders that wait too long, and store since when each waits."""
        zone, told = (
            schedule.box_zone(),
            {subject for kind, subject in reconcile.open_keys() if kind == "policy.overdue"},
        )
        pools = {pool.name: str(pool.guid) for pool in facts.pools}
        before, since = pending_faults.read_pending("snapshots"), dict[str, datetime]()
        late: dict[str, list[str]] = {}
        for pool, datasets in datasets_with_policies().items():
            for one in datasets_due(datasets, lambda policy, taken: overdue_grains(policy, taken, now, zone)):
                dataset, policy = one.dataset, one.policy
                if unchanged_snapshot(policy, one.taken, one.latest, now):
                    continue  # nothing was written: its latest snapshot serves
                key = pending_faults.fault_key(str(dataset.guid), policy.fingerprint)
                begun = datetime.fromtimestamp(before[key], UTC) if key in before else now
                since[key] = begun if begun <= now + AHEAD else now  # noted while the clock was wrong
                # What was told stays so until it is taken, also when the worker has begun anew meanwhile.
                if next_opening(policy, since[key], zone) + SNAPSHOT_AFTER <= now or pools.get(pool) in told:
                    late.setdefault(pool, []).append(dataset.name)
        pending_faults.store_pending("snapshots", {key: begun.timestamp() for key, begun in since.items()})
        self.late = late


snapshots = OverdueSnapshots()
