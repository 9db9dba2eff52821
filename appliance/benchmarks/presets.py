"""Preset sweeps, each for a common question. Pure: a preset fills in the matrix for the disks of this box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from appliance.facts.box import Disk
from appliance.layout.geometry import KIB, LEAST_DISKS, MIB
from appliance.message import Message

Needs = Literal["disks", "any disks", "pool", "network"]
LARGE = ("seq-write", "seq-read")
PARTITION_SHARE = 2 / 3  # of the smallest disk; compared with whole disks


class BenchmarkPreset(msgspec.Struct, frozen=True):
    """A preset. ``fill`` returns fields of a Sweep from the bytes of the smallest disk and the number of disks."""

    name: str
    title: str
    says: str
    needs: Needs
    least: int
    fill: Callable[[int, int], dict[str, object]]
    extra: Literal["", "log", "cache"] = ""


def layout_settings(_smallest: int, count: int) -> dict[str, object]:
    fitting = [name for name in ("mirror", "raidz1", "raidz2", "raidz3") if LEAST_DISKS[name] <= count]
    return {"layouts": fitting, "workloads": [*LARGE, "random-read"]}


def partition_settings(smallest: int, count: int) -> dict[str, object]:
    part = int(smallest * PARTITION_SHARE) // MIB * MIB
    return {"layouts": [usual_layout(count)], "partitions": [0, part], "workloads": LARGE}


def usual_layout(count: int) -> str:
    """The layout for comparing one other setting."""
    return "raidz1" if count >= 3 else "mirror" if count == 2 else "stripe"


def resilver_settings(_smallest: int, count: int) -> dict[str, object]:
    fitting = [name for name in ("mirror", "raidz1", "raidz2") if LEAST_DISKS[name] <= count]
    return {"layouts": fitting, "fills": [25, 50], "workloads": ["resilver"], "repeats": 1}


PRESETS = (
    BenchmarkPreset(
        "layouts",
        Message("Which layout for my disks?"),
        Message("Mirrors and every raidz that fits, large files and small reads."),
        "disks",
        2,
        layout_settings,
    ),
    BenchmarkPreset(
        "ashift",
        Message("Sectors: ashift 9 against 12"),
        Message("What it costs to treat a disk as having small sectors."),
        "disks",
        1,
        lambda _size, count: {"layouts": [usual_layout(count)], "ashifts": [9, 12], "workloads": LARGE},
    ),
    BenchmarkPreset(
        "parity",
        Message("raidz against raidz2"),
        Message("What the second disk of redundancy costs."),
        "disks",
        4,
        lambda _size, _count: {"layouts": ["raidz1", "raidz2"], "workloads": LARGE},
    ),
    BenchmarkPreset(
        "partition",
        Message("Whole disk against partition"),
        Message("Whether a partition of two thirds of each disk is faster or slower."),
        "disks",
        1,
        partition_settings,
    ),
    BenchmarkPreset(
        "compression",
        Message("Compression and dedup"),
        Message("With data that shrinks by a third; change that to what your files do."),
        "disks",
        1,
        lambda _size, count: {
            "layouts": [usual_layout(count)],
            "compressions": ["off", "lz4", "zstd"],
            "dedups": [False, True],
            "compressible": 33,
            "workloads": LARGE,
        },
    ),
    BenchmarkPreset(
        "log",
        Message("Does a log device help?"),
        Message("The same pool with and without it: for writes that are waited for, and for others."),
        "disks",
        1,
        lambda _size, count: {"layouts": [usual_layout(count)], "workloads": ["sync-write", "seq-write"], "writers": 4},
        "log",
    ),
    BenchmarkPreset(
        "cache",
        Message("Does a cache device help?"),
        Message("Small reads of the same data, again and again, until the device is warm."),
        "disks",
        1,
        lambda _size, count: {"layouts": [usual_layout(count)], "workloads": ["random-read"], "warmups": 3},
        "cache",
    ),
    BenchmarkPreset(
        "resilver",
        Message("How long does rebuilding take?"),
        Message("A disk is taken away and put back empty, with the pool a quarter and half full."),
        "disks",
        2,
        resilver_settings,
    ),
    BenchmarkPreset(
        "disks",
        Message("Each disk alone"),
        Message("Reads every disk at its start, middle and end. Nothing is written, so disks of a pool can take part."),
        "any disks",
        1,
        lambda _size, _count: {"workloads": ["disk-start", "disk-middle", "disk-end", "disk-latency"]},
    ),
    BenchmarkPreset(
        "volumes",
        Message("Which block size for a volume?"),
        Message(
            "For block storage and virtual machines: volumes with small and large blocks, large and small accesses."
        ),
        "disks",
        1,
        lambda _size, count: {
            "layouts": [usual_layout(count)],
            "volblocksizes": [8 * KIB, 16 * KIB, 64 * KIB, 128 * KIB],
            "workloads": [*LARGE, "random-read", "random-write"],
        },
    ),
    BenchmarkPreset(
        "protocols",
        Message("Which share protocol?"),
        Message(
            "The same folder in the box itself, over SMB, over NFS and over AFP, without a network between. "
            "AFP by a client of Larder's own, for large files and many small ones."
        ),
        "pool",
        0,
        lambda _size, _count: {"protocols": ["", "smb", "nfs", "afp"], "workloads": [*LARGE, "small-files"]},
    ),
    BenchmarkPreset(
        "network",
        Message("How fast is the network?"),
        Message(
            "To and from another computer, without any disk, so that you know what no pool can exceed. Start "
            "iperf3 -s there first."
        ),
        "network",
        0,
        lambda _size, _count: {"workloads": ["net-send", "net-receive"], "seconds": 10},
    ),
    BenchmarkPreset(
        "pool",
        Message("A pool that is in use"),
        Message("In a folder of its own with a limit, which is removed afterwards. Run it before and after a change."),
        "pool",
        0,
        lambda _size, _count: {"workloads": [*LARGE, "random-read", "sync-write"]},
    ),
)
BY_NAME = {preset.name: preset for preset in PRESETS}


def smallest_size(disks: Sequence[Disk]) -> int:
    return min((disk.size for disk in disks), default=0)
