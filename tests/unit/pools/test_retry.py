from __future__ import annotations

import pytest

from appliance import command
from appliance.pools.vdevs import retry

SAID = "cannot create 'tank': one or more devices is currently unavailable\n"


class Zpool:
    """A zpool whose disks are away for some times; then it works."""

    def __init__(self, away: int, said: str = SAID) -> None:
        self.away, self.said = away, said
        self.ran: list[list[str]] = []

    def run(self, argv, **_more) -> command.Result:
        self.ran.append(list(argv))
        if argv[0] != "zpool" or not self.away:
            return command.Result(tuple(argv), 0, "", "", 0)
        self.away -= 1
        raise command.CommandFailed(command.Result(tuple(argv), 1, "", self.said, 0))

    def times(self) -> int:
        return sum(argv[0] == "zpool" for argv in self.ran)


@pytest.fixture
def zpool(monkeypatch):
    def make(*given, **more) -> Zpool:
        made = Zpool(*given, **more)
        monkeypatch.setattr(command, "run", made.run)
        return made

    return make


@pytest.mark.parametrize("away", [0, 1, retry.TIMES - 1])
def test_a_disk_that_is_away_for_a_moment_is_waited_for(zpool, away):
    found = zpool(away)
    retry.run_with_udev_retry(["zpool", "create", "tank"], timeout=60)
    assert found.times() == away + 1
    assert found.ran.count(["udevadm", "settle", "--timeout=20"]) == away


def test_a_disk_that_stays_away_fails_as_zpool_said(zpool):
    found = zpool(9)
    with pytest.raises(command.CommandFailed, match="currently unavailable"):
        retry.run_with_udev_retry(["zpool", "create", "tank"], timeout=60)
    assert found.times() == retry.TIMES


def test_any_other_failure_is_not_tried_again(zpool):
    found = zpool(1, said="cannot create 'tank': pool already exists\n")
    with pytest.raises(command.CommandFailed, match="already exists"):
        retry.run_with_udev_retry(["zpool", "create", "tank"], timeout=60)
    assert found.times() == 1


def test_partition_that_udev_shows_too_late_is_waited_for(zpool):
    # As OpenZFS 2.3.9 says it.
    said = "cannot label 'sdb': failed to detect device partitions on '/dev/sdb1': 19\nError preparing/labeling disk.\n"
    found = zpool(1, said=said)
    retry.run_with_udev_retry(["zpool", "create", "tank"], timeout=60)
    assert found.times() == 2
