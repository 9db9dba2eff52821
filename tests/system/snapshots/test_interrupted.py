"""Killed or cut off at any recorded step of taking and pruning, the next run ends where an undisturbed one would have.

Whatever happens, nothing goes that the policy would keep, nor anything that it did not make.
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
    """The address of the snapshots of tank/photos: two are kept of each hour, of it and of the folder below."""
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
    """What the policy made and is there of each folder, oldest first."""
    return {name: [one for one in made(appliance, name) if one != STRANGER] for name in DATASETS}


def an_hour_later(appliance: Machine) -> None:
    appliance.run("date", "-s", "+1 hour")


def settled(appliance: Machine, count: int = 1) -> Seen:
    """Wait until each folder has so many of the policy's, one of them of this hour."""

    def so() -> Seen | None:
        hour = appliance.run("date", "-u", "+%Y.%m.%d-%H").strip()
        found = of_policy(appliance)
        good = all(len(some) == count and any(hour in one for one in some) for some in found.values())
        return found if good else None

    return dict(wait_for(f"{count} of the policy, one of this hour", so, timeout=300, every=1))


def check_nothing_kept_is_lost(appliance: Machine, before: Seen) -> Seen:
    """Of all that was ever there, the newest ones still are; and what no policy made."""
    now = of_policy(appliance)
    for name in DATASETS:
        ever = [*before[name], *(one for one in now[name] if one not in before[name])]
        assert set(ever[-KEPT:]) <= set(now[name]), (name, before[name], now[name])
    assert {"by-hand", STRANGER} <= set(there(appliance))
    return {name: [*before[name], *(one for one in now[name] if one not in before[name])] for name in DATASETS}


def check_it_converges(appliance: Machine, before: Seen) -> None:
    """The next run leaves what is to be there, and no more."""
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
def test_kill_9_at_a_recorded_step_is_made_up_for(visitor, appliance, photos, entry, step, victim):
    before = settled(appliance, count=KEPT)
    with crash.watching(appliance, entry=entry, step=step, victim=victim) as watcher:
        an_hour_later(appliance)
        crash.struck(watcher)
    check_it_converges(appliance, before)
    visitor.wait_until(photos, "by-hand", *of_policy(appliance)["tank/photos"], timeout=90)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("entry", ["step begun", "step done"])
def test_a_power_cut_at_a_recorded_step_is_made_up_for(visitor, appliance, photos, entry, step):
    before = settled(appliance, count=KEPT)
    with crash.watching(appliance, entry=entry, step=step, victim="nobody") as watcher:
        an_hour_later(appliance)
        # Read here: between the line in the journal and the cut nothing is to take its time.
        ahead = float(appliance.run("date", "+%s")) - time.monotonic()
        crash.struck(watcher)
        appliance.cut_power()
    appliance.power_on()
    # The machine's own clock knows nothing of the hours that the test has gone on: for a moment it is set back.
    appliance.run("date", "-s", f"@{ahead + time.monotonic():.0f}")
    visitor.sign_in()
    check_it_converges(appliance, before)


def test_while_redis_is_stopped_nothing_is_lost_and_what_was_due_is_caught_up(visitor, appliance, photos):
    before = settled(appliance, count=KEPT)
    with crash.stopped(appliance, "redis-server@larder"):
        an_hour_later(appliance)
        visitor.wait_until("/", "queue (Redis) is not running", timeout=90)
        check_nothing_kept_is_lost(appliance, before)
    check_it_converges(appliance, before)


@pytest.mark.parametrize("step", STEPS)
def test_redis_stopped_in_the_middle_changes_nothing(appliance, photos, step):
    before = settled(appliance, count=KEPT)
    with crash.watching(appliance, entry="step begun", step=step, victim="nobody") as watcher:
        an_hour_later(appliance)
        crash.struck(watcher)
        with crash.stopped(appliance, "redis-server@larder"):
            check_nothing_kept_is_lost(appliance, before)
    check_it_converges(appliance, before)
