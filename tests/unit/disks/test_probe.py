"""What a disk holds, read from the disk itself: files stand in for disks, the tools are the real ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from appliance import command
from appliance.agent import run_operation
from appliance.benchmarks import checks
from appliance.benchmarks.case import Case
from appliance.disks import clear_labels, exclusive_disk, probe, query, udev
from appliance.errors import Failed, Refused
from appliance.facts.box import Disk, Facts, Use
from appliance.layout.geometry import MIB
from appliance.operation import checked_plan
from appliance.pools.create import CreatePool
from tests.unit.made import JOB, box, disk, path_of

SIZE = 8 * MIB
OLD = Use("old", "holds ext4 data called photos", "1")


@pytest.fixture
def image(tmp_path, folders, monkeypatch) -> Path:
    monkeypatch.setattr(udev, "reread_disks", lambda _disks: None)
    monkeypatch.setitem(command.ENVIRONMENT, "PATH", f"{command.ENVIRONMENT['PATH']}:/usr/local/sbin")
    if not shutil.which("blkid", path=command.ENVIRONMENT["PATH"]):
        pytest.skip("blkid is not installed here")
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(SIZE)
    return path


def of(path: Path) -> Disk:
    return disk(1, path=str(path), size=SIZE)


def put(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def test_disk_of_zeros_is_free(image):
    assert probe.inspect_disk(of(image)) is None


@pytest.mark.parametrize("at", [0, 512, MIB - 1, SIZE - MIB, SIZE - 1])
def test_disk_with_bytes_without_a_signature_is_unknown_content(image, at):
    put(image, at, b"\x5a")
    assert probe.inspect_disk(of(image)) == probe.UNKNOWN


def test_signature_that_the_inventory_has_not_noticed_blocks_the_disk(image):
    put(image, 0, b"LUKS\xba\xbe\x00\x01")
    found = probe.inspect_disk(of(image))
    assert found is not None
    assert (found.kind, found.blocks) == ("differs", True)
    assert "crypto_LUKS" in found.text


def test_disk_that_cannot_be_read_blocks(image):
    found = probe.inspect_disk(of(image.parent / "gone"))
    assert found == probe.UNREADABLE
    assert found.blocks


def member(path: Path) -> Use | None:
    return probe.inspect_member(str(path), SIZE, 7)


def test_partition_of_a_pool_is_cleared_or_has_the_label_of_that_pool_alone(image, monkeypatch):
    assert member(image) is None
    put(image, SIZE - 1, b"\x5a")
    assert member(image) == probe.UNKNOWN
    put(image, 0, b"LUKS\xba\xbe\x00\x01")
    found = member(image)
    assert found is not None
    assert found.text == "holds crypto_LUKS data"
    assert member(image.parent / "gone") == probe.UNREADABLE
    # Derived: what blkid prints of a partition of a pool, whose UUID is the guid.
    for uuid, mine in (("7", True), ("8", False)):
        said = f"DEVNAME=/dev/sdb1\nLABEL=tank\nUUID={uuid}\nTYPE=zfs_member\nUSAGE=filesystem\n"
        monkeypatch.setattr(
            query, "query_disk", lambda _path, argv, said=said, **_more: command.Result(tuple(argv), 0, said, "", 0.0)
        )
        assert (member(image) is None) is mine


def test_disk_that_hangs_is_unreadable(image, monkeypatch):
    def silent(*_args: Any, **_more: Any) -> None:
        raise Failed("the disk did not answer")

    monkeypatch.setattr(query, "query_disk", silent)
    assert probe.inspect_disk(of(image)) == probe.UNREADABLE


def test_disks_that_hold_something_already_are_not_read_again(monkeypatch):
    monkeypatch.setattr(probe, "inspect_disk", lambda _disk: pytest.fail("it was read"))
    assert probe.probe_disks(box(disk(1, uses=(OLD,))), [path_of(1), path_of(9)]) == {}


def test_erased_disk_is_free_again(image, monkeypatch):
    monkeypatch.setattr(exclusive_disk, "device_size", lambda _handle: SIZE)
    for at in (0, 4096, SIZE - 512):
        put(image, at, b"\xff" * 512)
    clear_labels.zero_ends(str(image))
    assert probe.inspect_disk(of(image)) is None


# What follows from it


def unknown(number: int = 1) -> Disk:
    return disk(number, uses=(probe.UNKNOWN,))


def create() -> CreatePool:
    return CreatePool(name="tank", layout="mirror", groups=((path_of(1), path_of(2)),))


def test_unknown_content_needs_the_typed_name_and_is_told_as_a_loss():
    plan = checked_plan(create(), box(unknown(), disk(2)))
    assert plan.type_to_confirm == "tank"
    assert [loss.what for loss in plan.losses] == [
        "WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000001) holds data of a kind that Larder does not recognise"
    ]
    assert plan.steps[0].name == "erase"
    assert plan.steps[0].affects == (path_of(1),)


@pytest.mark.parametrize("use", [probe.UNREADABLE, Use("differs", "holds ext4 data that the system had not noticed")])
def test_unreadable_or_contradicting_disk_is_refused(use):
    with pytest.raises(Refused, match="cannot be used"):
        checked_plan(create(), box(disk(1, uses=(use,)), disk(2)))


def test_sweep_refuses_unknown_content():
    case = Case(where="scratch", workload="seq-write", disks=(path_of(1),), size=MIB)
    (reason,) = checks.check_case(case, "larder-sweep-0123456789ab", box(unknown()))
    assert reason.code == "benchmark-disk-in-use"


def test_agent_refuses_a_plan_made_for_an_empty_disk(folders, commands, monkeypatch):
    """As when the web could not ask the agent, or asked for something else."""
    monkeypatch.setattr(probe, "inspect_disk", lambda found: probe.UNKNOWN if found.path == path_of(1) else None)
    facts: Facts = box(disk(1), disk(2))
    sent: list[dict[str, Any]] = []
    run_operation.execute(JOB, create(), create().plan(facts).digest(), lambda: facts, sent.append)
    assert sent[-1]["outcome"]["state"] == "refused"
    assert "zpool" not in commands.tools
    assert "wipefs" not in commands.tools


def test_disks_are_read_under_their_locks(folders, commands, monkeypatch):
    from appliance.system import locks

    held: list[bool] = []
    monkeypatch.setattr(probe, "inspect_disk", lambda found: held.append(locks.is_taken(locks.path_of(found.path))))
    facts: Facts = box(disk(1), disk(2))
    run_operation.execute(JOB, create(), "0" * 16, lambda: facts, lambda _message: None)
    assert held == [True, True]
