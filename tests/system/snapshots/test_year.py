"""A year of automatic snapshots on real ZFS, with both clock changes, a clock set back, and a week switched off.

The first test runs through the year at once, with the decisions of the policy and the snapshots of ZFS.
The second moves the appliance's own clock over the clock changes and lets the worker decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
import pytest

from appliance.snapshots.policy import Policy
from deploy.image.machine import Machine, wait_for
from tests.system.policy import made, set_policy, there
from tests.unit.snapshots.test_policy import BERLIN, Expected
from tests.visitor import Visitor, create_pool, disk_paths

POLICY = Policy(hourly=6, daily=5, weekly=4, monthly=3)
SHIFTS = (datetime(2026, 3, 29, tzinfo=BERLIN), datetime(2026, 10, 25, tzinfo=BERLIN))
OFF = (datetime(2026, 7, 20, tzinfo=BERLIN), datetime(2026, 7, 27, tzinfo=BERLIN))
SCRIPT = """
import json, sys
from datetime import datetime
from zoneinfo import ZoneInfo
from appliance.zfs import libzfs as core, list_snapshots as snapshots; from appliance import snapshot_names; from appliance.snapshots import retention, policy as policies
from appliance.snapshots.policy import Policy, Taken

numbers, moments = json.load(sys.stdin)
policy, zone = Policy(**numbers), ZoneInfo("Europe/Berlin")
recorded = {}  # guid: moment and grains, as the settings keep them of what a run made
every, out = list(snapshots.list_snapshots(["tank/year"])), []


def taken():
    return [Taken(one.guid, one.txg, *recorded[one.guid]) for one in every if one.guid in recorded]


for text in moments:
    now = datetime.fromisoformat(text)
    if grains := policies.due_grains(policy, taken(), now, zone):
        name = f"tank/year@{snapshot_names.name_for(snapshot_names.coarsest_grain(grains), now)}"
        core.take_snapshots([name], {})
        every = list(snapshots.list_snapshots(["tank/year"]))
        recorded[next(one.guid for one in every if one.name == name)] = (now, grains)
    known = taken()
    if gone := {one.guid for one in retention.expired_snapshots(policy, known, others=len(every) - len(known))}:
        assert not core.destroy_snapshots(one.name for one in every if one.guid in gone)
        every = list(snapshots.list_snapshots(["tank/year"]))
    out.append([recorded[one.guid][0].isoformat() for one in every if one.guid in recorded])
print(json.dumps(out))
"""


def moments() -> Iterator[tuple[datetime, bool]]:
    """The moments at which the policy runs: each noon of the year, and each hour around the clock changes.

    Once a month the clock is set back by an hour, marked with False.
    """
    day = datetime(2026, 1, 1, 12, tzinfo=BERLIN)
    while day.year == 2026:
        if any(abs(day - shift) < timedelta(days=1) for shift in SHIFTS):
            start = day.astimezone(UTC)
            yield from ((start + timedelta(hours=hour), True) for hour in range(24))
        elif not OFF[0] <= day < OFF[1]:
            yield day.astimezone(UTC), True
            if day.day == 15:
                yield day.astimezone(UTC) - timedelta(hours=1), False
        day += timedelta(days=1)


@pytest.fixture(scope="module")
def year(appliance: Machine, visitor: Visitor) -> str:
    """The address of the snapshots of tank/year, which has two that no schedule took."""
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    appliance.run("zfs", "create", "tank/year")
    for name in ("by-hand", "larder-hourly-2020.01.01-00.00.00"):
        appliance.run("zfs", "snapshot", f"tank/year@{name}")
    guid = appliance.run("zfs", "get", "-H", "-o", "value", "guid", "tank/year").strip()
    visitor.wait_until(f"/snapshots/of/{guid}/", "by-hand", timeout=90)
    return f"/snapshots/of/{guid}/"


def test_every_run_of_a_year_keeps_exactly_expected_snapshots(appliance, year):
    asked = list(moments())
    given = json.dumps([msgspec.to_builtins(POLICY), [at.isoformat() for at, _forward in asked]])
    said = appliance.run("/opt/larder/venv/bin/python", "-c", SCRIPT, given=given, timeout=1800)
    found = json.loads(said.splitlines()[-1])
    assert len(found) == len(asked)
    wanted = Expected(POLICY)
    for (at, forward), now in zip(asked, found, strict=True):
        if forward:
            wanted.ran(at)
        assert {datetime.fromisoformat(one) for one in now} == wanted.moments, at
    assert {"by-hand", "larder-hourly-2020.01.01-00.00.00"} <= set(there(appliance, "tank/year"))


def hours(appliance: Machine) -> list[str]:
    """Grain and hour in UTC of each snapshot that the worker took, oldest first: ``daily 2027.03.28-00``."""
    names = [one.split("-", 2)[1:] for one in made(appliance, "tank/year") if "-2027." in one]
    return [f"{grain} {at[:13]}" for grain, at in names]


def at_moment(appliance: Machine, moment: str, wanted: list[str]) -> None:
    """Set the clock, and wait until exactly these exist, in this order."""
    appliance.run("date", "-u", "-s", moment)
    wait_for(f"{wanted} at {moment}", lambda: hours(appliance) == wanted, timeout=240, every=1)


def looked_at(appliance: Machine) -> str:
    """When the worker last read the snapshots, according to the inventory."""
    code = (
        "import sqlite3; print(sqlite3.connect('/run/larder/inventory/inventory.sqlite3').execute(\"select "
        "checked from inventory_source where name = 'snapshots'\").fetchall())"
    )
    return appliance.run("python3", "-c", code)


def test_worker_handles_clock_changes_and_clock_set_back(visitor, appliance, year):
    zone = appliance.run("timedatectl", "show", "-p", "Timezone", "--value").strip()
    appliance.run("timedatectl", "set-timezone", "Europe/Berlin")
    try:
        appliance.run("date", "-u", "-s", "2027-03-28 00:30")
        visitor.sign_in()
        set_policy(visitor, year, hourly=50, daily=50)
        # One night skips from 2:00 to 3:00, the other repeats an hour. Each is one day.
        spring = ["daily 2027.03.28-00", "hourly 2027.03.28-01"]
        at_moment(appliance, "2027-03-28 00:31", spring[:1])
        at_moment(appliance, "2027-03-28 01:30", spring)
        autumn = [*spring, "daily 2027.10.31-00", "hourly 2027.10.31-01"]
        at_moment(appliance, "2027-10-31 00:30", autumn[:3])
        at_moment(appliance, "2027-10-31 01:30", autumn)
        # The clock is set back by almost an hour: in two more runs nothing is taken twice and nothing expires.
        appliance.run("date", "-u", "-s", "2027-10-31 00:40")
        for _ in range(2):
            before = looked_at(appliance)
            wait_for("another look", partial(differs, appliance, before), timeout=240, every=1)
        assert hours(appliance) == autumn
        # A week later one snapshot catches up.
        at_moment(appliance, "2027-11-07 01:30", [*autumn, "daily 2027.11.07-01"])
    finally:
        appliance.run("timedatectl", "set-timezone", zone or "UTC")
        appliance.set_clock()


def differs(appliance: Machine, before: str) -> bool:
    return looked_at(appliance) != before
