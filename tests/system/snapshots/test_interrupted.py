"""After a kill or a power cut at any recorded step of taking and pruning, the next run ends like an undisturbed one.

Nothing is destroyed that the schedule would keep, nor anything that it did not take.
"""

from __future__ import annotations

import time

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import crash
from tests.system.policy import made, set_policy, there
from tests.system.sharing import key_of
from tests.visitor import Visitor, create_pool, disk_paths

DATASETS = ("tank/photos", "tank/photos/below")
STRANGER = "larder-hourly-2020.01.01-00.00.00"  # looks like the policy's, and was made by hand
KEPT = 2
STEPS = ("take", "destroy")
POINTS = [
    (entry, step, victim) for step in STEPS for entry in ("step begun", "step done") for victim in ("agent", "worker")
]
Seen = dict[str, list[str]]


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The address of the snapshots of tank/photos. Two hourly ones are kept of it and of the folder below."""
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    appliance.run("zfs", "create", "-p", "tank/photos/below")
    # Not two in one command: ZFS takes only one of each dataset in a transaction.
    for name in (STRANGER, "by-hand"):
        appliance.run("zfs", "snapshot", f"tank/photos@{name}")
    photos = f"/snapshots/of/{key_of(appliance, 'tank/photos')}/"
    visitor.wait_until(photos, "by-hand", STRANGER, timeout=90)
    set_policy(visitor, photos, hourly=KEPT)
    settled(appliance)
    an_hour_later(appliance)
    settled(appliance, count=KEPT)
    return photos


def of_policy(appliance: Machine) -> Seen:
    """The existing snapshots of each folder that the schedule took, oldest first."""
    return {name: [one for one in made(appliance, name) if one != STRANGER] for name in DATASETS}


def an_hour_later(appliance: Machine) -> None:
    appliance.run("date", "-s", "+1 hour")


def settled(appliance: Machine, count: int = 1) -> Seen:
    """Wait until each folder has so many of the schedule's snapshots, one of them of this hour."""

    def find_settled() -> Seen | None:
        hour = appliance.run("date", "-u", "+%Y.%m.%d-%H").strip()
        found = of_policy(appliance)
        good = all(len(some) == count and any(hour in one for one in some) for some in found.values())
        return found if good else None

    return dict(wait_for(f"{count} of the schedule, one of this hour", find_settled, timeout=300, every=1))


def check_nothing_kept_is_lost(appliance: Machine, before: Seen) -> Seen:
    """Check that the newest of all snapshots that ever existed still do, and those that no schedule took."""
    now = of_policy(appliance)
    for name in DATASETS:
        ever = [*before[name], *(one for one in now[name] if one not in before[name])]
        assert set(ever[-KEPT:]) <= set(now[name]), (name, before[name], now[name])
    assert {"by-hand", STRANGER} <= set(there(appliance))
    return {name: [*before[name], *(one for one in now[name] if one not in before[name])] for name in DATASETS}


def check_it_converges(appliance: Machine, before: Seen) -> None:
    """Check that the next run leaves exactly the expected snapshots."""
    ever = check_nothing_kept_is_lost(appliance, before)
    crash.no_lock_left(appliance)
    # An interrupted run rests for ten minutes of the clock before it is tried again.
    appliance.run("date", "-s", "+15 minutes")
    settled(appliance, count=KEPT)
    check_nothing_kept_is_lost(appliance, ever)


@pytest.mark.parametrize(
    ("entry", "step", "victim"),
    POINTS,
    ids=["-".join(point).replace(" ", "-") for point in POINTS],
)
def test_run_after_kill_catches_up(visitor, appliance, photos, entry, step, victim):
    before = settled(appliance, count=KEPT)
    with crash.watching(appliance, entry=entry, step=step, victim=victim) as watcher:
        an_hour_later(appliance)
        crash.struck(watcher)
    check_it_converges(appliance, before)
    visitor.wait_until(photos, "by-hand", *of_policy(appliance)["tank/photos"], timeout=90)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("entry", ["step begun", "step done"])
def test_run_after_power_cut_catches_up(visitor, appliance, photos, entry, step):
    before = settled(appliance, count=KEPT)
    with crash.watching(appliance, entry=entry, step=step, victim="nobody") as watcher:
        an_hour_later(appliance)
        # Read here, because nothing slow may run between the line in the journal and the cut.
        ahead = float(appliance.run("date", "+%s")) - time.monotonic()
        crash.struck(watcher)
        appliance.cut_power()
    appliance.power_on()
    # The hardware clock does not have the hours that the test added, so for a moment the clock is behind.
    appliance.run("date", "-s", f"@{ahead + time.monotonic():.0f}")
    visitor.sign_in()
    check_it_converges(appliance, before)


def test_run_after_redis_was_stopped_catches_up(visitor, appliance, photos):
    before = settled(appliance, count=KEPT)
    with crash.stopped(appliance, "redis-server@larder"):
        an_hour_later(appliance)
        visitor.wait_until("/", "queue (Redis) is not running", timeout=90)
        check_nothing_kept_is_lost(appliance, before)
    check_it_converges(appliance, before)


@pytest.mark.parametrize("step", STEPS)
def test_redis_stopped_during_run_loses_nothing(appliance, photos, step):
    before = settled(appliance, count=KEPT)
    with crash.watching(appliance, entry="step begun", step=step, victim="nobody") as watcher:
        an_hour_later(appliance)
        crash.struck(watcher)
        with crash.stopped(appliance, "redis-server@larder"):
            check_nothing_kept_is_lost(appliance, before)
    check_it_converges(appliance, before)
