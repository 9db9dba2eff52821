"""What a rehearsal does in the pool: the order of its commands, and that each part looks again before it writes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.disks import inventory, probe
from appliance.errors import Cancelled, Failed
from appliance.facts.box import Disk, LongWork, Pool, Use
from appliance.facts.datasets import Dataset
from appliance.rehearsal import steps
from appliance.rehearsal.result import DiskOut
from appliance.zfs import kstat, list_snapshots, mountpoints, private_mount, status
from tests.unit.made import path_of
from tests.unit.pools import shapes
from tests.unit.pools.test_create import Working
from tests.unit.rehearsal.test_rehearse import folder, root

OUT = DiskOut(vdev=102, disk=path_of(2))
BEGAN = datetime(2026, 11, 24, 20, tzinfo=UTC)
DONE = LongWork("resilver", "finished", BEGAN, BEGAN + timedelta(seconds=90), 10**9, 10**9, repaired=5 * 10**8)
PART = Use("pool", "is part of the pool tank", "7", "tank")


class Box:
    """Made up: the mirror tank of disks 1 and 2; commands change it as ZFS would."""

    def __init__(self) -> None:
        self.pool: Pool = shapes.mirror()
        self.datasets: list[Dataset] = [root()]
        self.listed = ["tank"]
        self.files: list[str] = []
        self.disks: list[Disk] = list(shapes.facts(self.pool).disks)
        self.ran: list[list[str]] = []
        self.online_works = True
        self.cleared: list[str] = []
        self.during: Callable[[], None] = lambda: None
        self.labels = ["zfs-0123456789abcdef", None]  # of the partitions of the disk; None: without a name
        self.on_partition: Use | None = None  # what is read of its first one besides the pool's label

    def run(self, argv: list[str], **options: Any) -> command.Result:
        self.ran.append(list(argv))
        match argv[:2]:
            case ["zfs", "list"]:
                return command.Result(tuple(argv), 0, "\n".join(self.listed), "", 0.0)
            case ["lsblk", "-J"]:
                rows = [{"type": "part", "partlabel": label} for label in self.labels]
                listing = {"blockdevices": [{"type": "disk", "partlabel": None, "children": rows}]}
                return command.Result(tuple(argv), 0, json.dumps(listing), "", 0.0)
            case ["zfs", "create"]:
                self.datasets.append(folder())
                self.listed.append("tank/larder-rehearsal")
            case ["zfs", "destroy"]:
                self.datasets.pop()
                self.listed.remove("tank/larder-rehearsal")
            case ["zpool", "offline"]:
                self.pool = shapes.mirror("ONLINE", "OFFLINE")
            case ["zpool", "online"]:
                self.pool = shapes.mirror("ONLINE", "ONLINE" if self.online_works else "UNAVAIL")
            case ["zpool", "replace"]:
                new = replace(shapes.leaf(2), guid=202)
                self.pool = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), new), work=(DONE,))
            case ["zpool", "wait"]:
                options.get("meanwhile", lambda: None)()
                self.during()
        return command.Result(tuple(argv), 0, "", "", 0.0)

    @property
    def changes(self) -> list[str]:
        """The commands that change something."""
        return [" ".join(argv[:2]) for argv in self.ran if argv[:2] != ["zfs", "list"] and argv[0] != "lsblk"]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Box:
    found = Box()

    @contextmanager
    def no_folder(*_where: object) -> Iterator[int]:
        yield -1

    @contextmanager
    def files(_handle: int) -> Iterator[list[Path]]:
        yield [Path(name) for name in found.files]

    monkeypatch.setattr(command, "run", found.run)
    monkeypatch.setattr(status, "read_pools", lambda: (found.pool,))
    monkeypatch.setattr(status, "read_datasets", lambda: tuple(found.datasets))
    monkeypatch.setattr(inventory, "read_disks", lambda _pools: tuple(found.disks))
    monkeypatch.setattr(mountpoints, "top_of", no_folder)
    monkeypatch.setattr(private_mount, "root_of", no_folder)
    monkeypatch.setattr(private_mount, "reopen_for_reading", lambda *_given: os.open("/dev/null", os.O_RDONLY))
    monkeypatch.setattr(os, "scandir", files)
    monkeypatch.setattr(list_snapshots, "list_snapshots", lambda _names: iter(()))
    monkeypatch.setattr(kstat, "is_stopped", lambda _pool: False)
    monkeypatch.setattr(steps, "zero_ends", found.cleared.append)
    monkeypatch.setattr(probe, "inspect_member", lambda *_given: found.on_partition)
    monkeypatch.setattr(steps, "LOOKS", 1)
    monkeypatch.setattr(steps, "SECONDS_BETWEEN_LOOKS", 0)
    return found


def offline(machine: Box) -> None:
    machine.pool = shapes.mirror("ONLINE", "OFFLINE")


def test_whole_rehearsal_runs_its_commands_in_order_and_stores_the_time(machine):
    work = Working()
    steps.make_folder("tank", OUT)
    steps.fill_pool("tank", 2**20, work)
    steps.take_offline("tank", OUT, work)
    steps.clear_disk("tank", OUT, work)
    steps.rebuild_disk("tank", OUT, 25, work)
    steps.remove_folder("tank", work)
    assert machine.changes == [
        "zfs create",
        "fio --output-format=json",
        "zpool sync",
        "zpool offline",
        "zpool replace",
        "zpool wait",
        "zfs set",
        "zfs destroy",
    ]
    assert machine.cleared == [f"{path_of(2)}-part1"]
    stored = next(argv for argv in machine.ran if argv[:2] == ["zfs", "set"])
    assert stored[3] == "tank"
    result = json.loads(stored[2].partition("=")[2])
    assert (result["looked"], result["written"], result["share"], result["vdev"]) == (10**9, 5 * 10**8, 25, 102)
    assert result["disk"] == path_of(2).rsplit("/", 1)[1]
    assert len(result["disks"]) == 2


def test_time_is_that_of_zfs_unless_the_clock_was_set_meanwhile():
    assert steps.rebuild_seconds(DONE, 95.0) == 90
    assert steps.rebuild_seconds(DONE, 40.0) == 40
    assert steps.rebuild_seconds(replace(DONE, ended=BEGAN - timedelta(hours=1)), 95.0) == 95


PARTS: list[Callable[[], None]] = [
    lambda: steps.make_folder("tank", OUT),
    lambda: steps.fill_pool("tank", 2**20, Working()),
    lambda: steps.take_offline("tank", OUT, Working()),
    lambda: steps.clear_disk("tank", OUT, Working()),
    lambda: steps.rebuild_disk("tank", OUT, 25, Working()),
]


@pytest.mark.parametrize("part", PARTS, ids=["folder", "fill", "offline", "clear", "rebuild"])
@pytest.mark.parametrize("content", ["tank@monday", "tank/photos", "file"])
def test_each_part_stops_when_something_was_stored_in_the_pool_meanwhile(machine, part, content):
    if content == "file":
        machine.files = ["letter.txt"]
    else:
        machine.listed.append(content)
    with pytest.raises(Failed, match="is not empty any more"):
        part()
    assert machine.changes == []
    assert machine.cleared == []


@pytest.mark.parametrize("part", [PARTS[0], PARTS[2]], ids=["folder", "offline"])
def test_no_disk_is_taken_out_of_a_pool_that_is_not_healthy_any_more(machine, part):
    machine.pool = shapes.mirror("FAULTED", "ONLINE")
    with pytest.raises(Failed, match="is not healthy any more"):
        part()
    assert machine.changes == []


def test_disk_in_use_is_neither_cleared_nor_rebuilt(machine):
    for part in PARTS[3:]:
        with pytest.raises(Failed, match="is not offline in tank"):
            part()
    assert machine.changes == []
    assert machine.cleared == []


@pytest.mark.parametrize("part", PARTS[3:], ids=["clear", "rebuild"])
def test_disk_that_is_gone_or_used_by_something_else_is_not_written_to(machine, part):
    offline(machine)
    machine.disks = [
        replace(one, uses=(PART, Use("mounted", "is in use at /mnt"))) if one.path == path_of(2) else one
        for one in machine.disks
    ]
    with pytest.raises(Failed, match="is in use at /mnt"):
        part()
    machine.disks = [one for one in machine.disks if one.path != path_of(2)]
    with pytest.raises(Failed, match="does not answer any more"):
        part()
    assert machine.changes == []
    assert machine.cleared == []


def test_rebuild_that_ends_without_a_healthy_pool_has_no_result(machine):
    offline(machine)

    def another_disk_fails() -> None:
        machine.pool = replace(machine.pool, state="DEGRADED")

    machine.during = another_disk_fails
    with pytest.raises(Failed, match="but tank is not healthy"):
        steps.rebuild_disk("tank", OUT, 25, Working())
    assert "zfs set" not in machine.changes


def test_progress_of_a_rebuild_has_the_words_of_a_replacement(machine, monkeypatch):
    told: list[str] = []

    class Telling(Working):
        def progress(self, percent: int, phrase: str) -> None:
            told.append(phrase)

    monkeypatch.setattr(steps, "SECONDS_BETWEEN_READINGS", 0)
    machine.pool = replace(shapes.mirror(), work=(replace(DONE, state="running", ended=None, done=4 * 10**8),))
    steps.rebuild_reporter("tank", Telling())()
    assert told == ["Rebuilding tank: 40 %, estimating the time left"]
    monkeypatch.setattr(kstat, "is_stopped", lambda _pool: True)
    with pytest.raises(Failed, match="The pool has stopped"):
        steps.rebuild_reporter("tank", Telling())()


def test_stop_is_heard_while_data_is_written_and_while_the_disk_is_rebuilt():
    class Stopped(Working):
        def stop_if_asked(self) -> None:
            raise Cancelled

    for look in (steps.fill_reporter("tank", -1, 5, Stopped()), steps.rebuild_reporter("tank", Stopped())):
        with pytest.raises(Cancelled):
            look()


# --- putting everything back ------------------------------------------------------------------------------------
def left_over(machine: Box) -> None:
    machine.datasets.append(folder())
    machine.listed.append("tank/larder-rehearsal")


def test_disk_that_was_not_cleared_is_only_brought_online(machine):
    left_over(machine)
    offline(machine)
    steps.clear_up("tank", OUT, Working())
    assert machine.changes == ["zpool online", "zfs destroy", "zpool wait"]


def test_disk_that_was_cleared_is_rebuilt_after_it_did_not_come_online(machine):
    left_over(machine)
    offline(machine)
    machine.online_works = False
    steps.clear_up("tank", OUT, Working())
    assert machine.changes == ["zpool online", "zpool replace", "zfs destroy", "zpool wait"]


OTHERS = [
    Use("old", "holds ntfs data called photos", "01D8"),
    Use("old", "holds ext4 data"),
    Use("exported", "holds the pool attic, which is not in use here", "9", "attic"),
    Use("mounted", "is in use at /mnt"),
]


def hold(machine: Box, *uses: Use) -> None:
    """What the inventory sees on the disk that is out."""
    machine.disks = [replace(one, uses=uses) if one.path == path_of(2) else one for one in machine.disks]


@pytest.mark.parametrize("other", OTHERS, ids=["ntfs", "ext4", "another pool", "mounted"])
def test_disk_on_which_something_was_stored_meanwhile_is_never_overwritten(machine, other):
    left_over(machine)
    offline(machine)
    machine.online_works = False
    for uses in ((PART, other), (other,)):
        hold(machine, *uses)
        with pytest.raises(Failed, match="Nothing more was written to it"):
            steps.put_back("tank", OUT, Working())
    assert "zpool replace" not in machine.changes
    with pytest.raises(Failed, match=rf"the disk is not back in tank.*{other.text}"):
        steps.clear_up("tank", OUT, Working())
    assert "zfs destroy" in machine.changes


@pytest.mark.parametrize("labels", [["Basic data partition"], ["zfs-0123456789abcdef", "photos"], [None], []])
def test_disk_with_partitions_that_zpool_did_not_make_is_never_overwritten(machine, labels):
    offline(machine)
    machine.online_works = False
    machine.labels = labels
    hold(machine, Use("old", "has a partition table (gpt)"))
    with pytest.raises(Failed, match="does not recognise"):
        steps.put_back("tank", OUT, Working())
    assert "zpool replace" not in machine.changes


def test_disk_whose_partition_is_neither_cleared_nor_of_the_pool_is_never_overwritten(machine):
    offline(machine)
    machine.online_works = False
    hold(machine, Use("old", "has a partition table (gpt)"))
    machine.on_partition = probe.UNKNOWN
    with pytest.raises(Failed, match="does not recognise"):
        steps.put_back("tank", OUT, Working())
    machine.on_partition = None
    steps.put_back("tank", OUT, Working())
    assert machine.changes.count("zpool replace") == 1


def test_record_that_names_another_disk_than_that_of_the_place_overwrites_none(machine):
    offline(machine)
    machine.online_works = False
    with pytest.raises(Failed, match="is not the disk that is out of tank"):
        steps.put_back("tank", DiskOut(vdev=102, disk=path_of(5)), Working())
    assert "zpool replace" not in machine.changes


def test_clean_up_ends_well_where_another_disk_has_taken_the_place(machine):
    left_over(machine)
    machine.pool = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(5)))
    steps.clear_up("tank", OUT, Working())
    assert machine.changes == ["zfs destroy", "zpool wait"]


def test_disk_that_is_in_use_or_being_rebuilt_is_left_alone(machine):
    left_over(machine)
    steps.clear_up("tank", OUT, Working())
    assert machine.changes == ["zfs destroy", "zpool wait"]
    machine.ran.clear()
    again = shapes.group(
        "replacing-0",
        shapes.leaf(2, "OFFLINE", path=f"{path_of(2)}-part1/old"),
        replace(shapes.leaf(2), guid=202),
        guid=61,
        kind="replacing",
        state="DEGRADED",
    )
    machine.pool = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), again))
    steps.put_back("tank", OUT, Working())
    assert machine.changes == []


def test_test_data_is_deleted_although_the_disk_has_vanished(machine):
    left_over(machine)
    machine.pool = shapes.mirror("ONLINE", "UNAVAIL")
    machine.disks = machine.disks[:1]
    with pytest.raises(Failed, match=r"The test data is deleted, but the disk is not back in tank.*does not answer"):
        steps.clear_up("tank", OUT, Working())
    assert machine.changes == ["zfs destroy"]


@pytest.mark.parametrize("what", ["subfolder", "snapshot", "not ours"])
def test_folder_with_anything_else_in_it_is_not_destroyed(machine, monkeypatch, what):
    left_over(machine)
    if what == "subfolder":
        machine.datasets.append(replace(folder(), name="tank/larder-rehearsal/photos"))
    elif what == "snapshot":
        monkeypatch.setattr(list_snapshots, "list_snapshots", lambda _names: iter(("tank/larder-rehearsal@s",)))
    else:
        machine.datasets[-1] = folder(source="received")
    with pytest.raises(Failed, match="was not deleted"):
        steps.remove_folder("tank", Working())
    assert "zfs destroy" not in machine.changes
