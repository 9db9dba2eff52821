"""Disks that udev does not reread while they are partitioned: the rule, its time, and what
stays where something fails."""

from __future__ import annotations

import os

import pytest

from appliance import command
from appliance.disks import udev
from appliance.pools.vdevs import retry

RELOAD = ["udevadm", "control", "--reload"]


class Box:
    """Two disks as /sys and /dev show them, and a udevadm that says which rules stood when it was asked."""

    def __init__(self, root) -> None:
        self.rules, self.block, self.dev = root / "udev" / "rules.d", root / "block", root / "dev"
        self.ran: list[tuple[list[str], str]] = []
        self.broken = False
        self.rules.parent.mkdir()
        self.dev.mkdir()
        for name, parts in (("sdb", 2), ("sdc", 0)):
            (self.block / name).mkdir(parents=True)
            (self.dev / name).touch()
            (self.dev / f"ata-{name}").symlink_to(self.dev / name)
            for part in range(1, parts + 1):
                (self.block / name / f"{name}{part}").mkdir()
                (self.block / name / f"{name}{part}" / "partition").write_text(f"{part}\n")

    def path(self, name: str) -> str:
        return str(self.dev / f"ata-{name}")

    def now(self) -> str:
        return "".join(file.read_text() for file in sorted(self.rules.glob("*")))

    def run(self, argv, **_more) -> command.Result:
        self.ran.append((list(argv), self.now()))
        if self.broken and argv[0] == "udevadm":
            raise command.CommandTimedOut(argv, 60, None)
        return command.Result(tuple(argv), 0, "", "", 0)


@pytest.fixture
def box(tmp_path, monkeypatch) -> Box:
    made = Box(tmp_path)
    monkeypatch.setattr(udev, "RULES", made.rules)
    monkeypatch.setattr(udev, "BLOCK", made.block)
    monkeypatch.setattr(command, "run", made.run)
    return made


RULE = 'ACTION!="remove", SUBSYSTEM=="block", KERNELS=="sdb", OPTIONS:="nowatch"\n'


def test_a_disk_is_not_watched_while_zpool_partitions_it(box):
    with udev.unwatched([box.path("sdb")]):
        command.run(["zpool"])
    triggered = ["udevadm", "trigger", "--action=change", "--settle"]
    parts = [str(box.block / "sdb"), *(str(box.block / "sdb" / f"sdb{part}") for part in (1, 2))]
    assert [(argv[:4], rules) for argv, rules in box.ran] == [
        (RELOAD, RULE),
        (triggered, RULE),
        (["zpool"], RULE),
        (RELOAD, ""),
        (triggered, ""),
    ]
    assert all(sorted(argv[4:]) == parts for argv, _rules in box.ran if "trigger" in argv)


def test_it_is_watched_again_where_the_work_fails(box):
    with pytest.raises(ZeroDivisionError), udev.unwatched([box.path("sdb"), box.path("sdc")]):
        assert box.now().count("\n") == 2
        raise ZeroDivisionError
    assert not box.now()
    assert box.ran[-2] == (RELOAD, "")


def test_a_udev_that_does_not_answer_stops_nothing(box):
    box.broken = True
    with udev.unwatched([box.path("sdb")]):
        pass
    assert not box.now()


@pytest.mark.parametrize("path", ["ata-gone", "sdz", "loop7p1"])
def test_what_is_no_disk_here_has_no_rule(box, path):
    with udev.unwatched([str(box.dev / path)]):
        assert not box.rules.exists()
    assert box.ran == []


def test_without_udev_nothing_is_written(box):
    box.rules.parent.rmdir()
    with udev.unwatched([box.path("sdb")]):
        assert not box.rules.parent.exists()
    assert box.ran == []


def test_what_a_killed_process_left_goes_with_the_next_call_and_that_of_a_living_one_stays(box):
    box.rules.mkdir()
    gone = box.rules / f"{udev.PREFIX}99999999-aa.rules"
    other = box.rules / f"{udev.PREFIX}{os.getppid()}-bb.rules"
    foreign = box.rules / "61-mine.rules"
    for file in (gone, other, foreign):
        file.write_text("#\n")
    with udev.unwatched([box.path("sdb")]):
        pass
    assert sorted(box.rules.iterdir()) == sorted([other, foreign])


def test_zpool_has_the_devices_of_its_command_unwatched_and_no_other_word(box, monkeypatch):
    asked: list[list[str]] = []
    real = udev.unwatched
    monkeypatch.setattr(udev, "unwatched", lambda disks: asked.append(list(disks)) or real(disks))
    retry.run_with_udev_retry(
        ["zpool", "create", "-m", "/srv/sda", "--", "sda", "mirror", "/dev/disk/by-id/ata-x"], timeout=60
    )
    assert asked == [["/dev/disk/by-id/ata-x"]]
