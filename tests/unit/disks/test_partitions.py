from __future__ import annotations

from pathlib import Path

import pytest

from appliance.disks import partitions
from appliance.disks.partitions import Cut, has_partitions, partition_step
from appliance.errors import Failed
from appliance.layout.geometry import GIB, MIB
from tests.unit.made import disk

MIB_OF_FIRST, MIB_OF_REST = 1_907_200, 900 * 1024


class Working:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def progress(self, percent: int, phrase: str) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def secret(self) -> str:
        raise AssertionError

    def stop_if_asked(self) -> None: ...


@pytest.fixture
def block(tmp_path, monkeypatch) -> Path:
    """A folder in place of /sys/class/block, and by-id links that lead to its names."""
    folder = tmp_path / "block"
    folder.mkdir()
    monkeypatch.setattr(partitions, "BLOCK", folder)
    monkeypatch.setattr(partitions, "SECONDS_BETWEEN_LOOKS", 0)
    return folder


def cut(tmp_path: Path, rest: int = 0) -> Cut:
    return Cut(disk(1, path=str(tmp_path / "ata-X")), MIB_OF_FIRST * MIB, rest)


def appear(tmp_path: Path, block: Path, *sizes: int) -> None:
    """What udev and the kernel show after partitioning."""
    (tmp_path / "ata-X").touch()
    for number, size in enumerate(sizes, 1):
        node = tmp_path / f"sda{number}"
        node.touch()
        (tmp_path / f"ata-X-part{number}").symlink_to(node)
        (block / node.name).mkdir()
        (block / node.name / "size").write_text(f"{size // 512}\n")


def test_the_commands_shown_are_those_run_and_make_partitions_of_whole_mebibytes(commands, tmp_path, block):
    made = cut(tmp_path, MIB_OF_REST * MIB)
    appear(tmp_path, block, *made.sizes)
    step = partition_step([made], ["tank", "spill"])
    work = Working()
    step.run(work)
    assert [" ".join(argv) for argv in commands.ran[:2]] == step.command_text.splitlines()
    assert commands.ran[0] == ["sgdisk", "--zap-all", "--", made.disk.path]
    assert commands.ran[1] == [
        "sgdisk",
        "--clear",
        f"--new=1:0:+{MIB_OF_FIRST}M",
        "--typecode=1:BF01",
        "--change-name=1:tank",
        f"--new=2:0:+{MIB_OF_REST}M",
        "--typecode=2:BF01",
        "--change-name=2:spill",
        "--",
        made.disk.path,
    ]
    assert commands.tools == ["sgdisk", "sgdisk", "udevadm", "udevadm"]
    assert work.notes == [f"Partitioned {made.disk.path}"]


def test_a_disk_without_a_remainder_gets_one_partition(commands, tmp_path, block):
    appear(tmp_path, block, cut(tmp_path).first)
    partition_step([cut(tmp_path)], ["tank", "spill"]).run(Working())
    assert not any(word.startswith("--new=2") for word in commands.ran[1])


def test_a_disk_that_vanished_is_not_partitioned(commands, tmp_path, block):
    with pytest.raises(Failed, match="vanished"):
        partition_step([cut(tmp_path)], ["tank"]).run(Working())
    assert commands.ran == []


@pytest.mark.parametrize("sizes", [(), (5 * GIB,)])
def test_partitions_that_do_not_appear_as_wanted_are_a_failure(commands, tmp_path, block, sizes):
    appear(tmp_path, block, *sizes)
    with pytest.raises(Failed, match="did not appear"):
        partition_step([cut(tmp_path)], ["tank"]).run(Working())


def test_partitions_that_udev_takes_away_for_a_moment_are_waited_for(commands, tmp_path, block, monkeypatch):
    answers = iter([True, False, False, True, True])
    monkeypatch.setattr(partitions, "has_partitions", lambda _cut: next(answers))
    (tmp_path / "ata-X").touch()
    partition_step([cut(tmp_path)], ["tank"]).run(Working())
    assert list(answers) == []


def test_the_probe_sees_partitions_of_the_right_size_only(tmp_path, block):
    both = cut(tmp_path, MIB_OF_REST * MIB)
    assert not has_partitions(both)
    appear(tmp_path, block, *both.sizes)
    assert has_partitions(both)
    assert not has_partitions(cut(tmp_path, 5 * MIB))
