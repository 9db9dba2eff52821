"""Workloads: their names and units. Their commands are made by ``workload_command.py`` and ``fio_command.py``.

The time of large files includes ``zpool sync`` (``SYNCED``). An fsync at their end would use the log device, and
the result would wrongly say that it helps.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from appliance.message import Message

Unit = Literal["B/s", "per second", "seconds"]
FILES, FILE_SIZE = 1000, 512  # many small files, of this many bytes each
DATA = "data"  # name of the file in the scratch folder
SYNCED = ("seq-write", "dd-write")  # end only after ``zpool sync``


class WorkloadKind(msgspec.Struct, frozen=True):
    """A workload. ``main`` names the figure that is compared, in ``unit``."""

    title: str
    says: str
    unit: Unit
    main: Literal["rate", "operations", "seconds"]
    reads: bool = False
    writes: bool = False
    timed: bool = False  # runs for a given time instead of a given amount
    needs_file: bool = False  # needs a prefilled file

    @property
    def more_is_better(self) -> bool:
        return self.unit != "seconds"


KINDS: dict[str, WorkloadKind] = {
    "seq-write": WorkloadKind(
        Message("Large files, writing"),
        Message("One large file is written from its beginning to its end."),
        "B/s",
        "rate",
        writes=True,
    ),
    "seq-read": WorkloadKind(
        Message("Large files, reading"),
        Message("One large file is read from its beginning to its end."),
        "B/s",
        "rate",
        reads=True,
        needs_file=True,
    ),
    "dd-write": WorkloadKind(
        Message("dd, writing"),
        Message("What dd writes, as in the tables that people post."),
        "B/s",
        "rate",
        writes=True,
    ),
    "dd-read": WorkloadKind(
        Message("dd, reading"), Message("What dd reads back."), "B/s", "rate", reads=True, needs_file=True
    ),
    "random-read": WorkloadKind(
        Message("Small reads all over"),
        Message("4 KiB are read here and there, as a database or a virtual machine does."),
        "per second",
        "operations",
        reads=True,
        timed=True,
        needs_file=True,
    ),
    "random-write": WorkloadKind(
        Message("Small writes all over"),
        Message("4 KiB are written here and there."),
        "per second",
        "operations",
        writes=True,
        timed=True,
        needs_file=True,
    ),
    "mixed": WorkloadKind(
        Message("Small reads and writes"),
        Message("Seven reads to three writes of 4 KiB."),
        "per second",
        "operations",
        reads=True,
        writes=True,
        timed=True,
        needs_file=True,
    ),
    "sync-write": WorkloadKind(
        Message("Small writes that are waited for"),
        Message("4 KiB each, on disk before the next: NFS, databases, virtual machines."),
        "per second",
        "operations",
        writes=True,
        timed=True,
    ),
    "small-files": WorkloadKind(
        Message("Many small files"),
        Message("1,000 files of 512 bytes by each writer, each safe on disk before the next."),
        "per second",
        "operations",
        writes=True,
    ),
    "resilver": WorkloadKind(
        Message("Rebuilding a disk"),
        Message("How long it takes to rebuild a replaced disk."),
        "seconds",
        "seconds",
        writes=True,
    ),
    "bonnie": WorkloadKind(
        "bonnie++",
        Message(
            "Large files in blocks, seeks, and 1,024 files without content, for those who compare with old "
            "results. What is compared is writing in blocks."
        ),
        "B/s",
        "rate",
        reads=True,
        writes=True,
    ),
    "net-send": WorkloadKind(
        Message("Sending over the network"),
        Message("From this box to the other computer, without any disk."),
        "B/s",
        "rate",
        timed=True,
    ),
    "net-receive": WorkloadKind(
        Message("Receiving over the network"),
        Message("From the other computer to this box, without any disk."),
        "B/s",
        "rate",
        timed=True,
    ),
    "disk-start": WorkloadKind(
        Message("Reading at the start"),
        Message("The outer tracks, where a disk with platters is fastest."),
        "B/s",
        "rate",
        reads=True,
    ),
    "disk-middle": WorkloadKind(
        Message("Reading in the middle"), Message("Half way through the disk."), "B/s", "rate", reads=True
    ),
    "disk-end": WorkloadKind(
        Message("Reading at the end"),
        Message("The inner tracks, where a disk with platters is slowest."),
        "B/s",
        "rate",
        reads=True,
    ),
    "disk-latency": WorkloadKind(
        Message("Finding one place"),
        Message("4 KiB from here and there, one at a time."),
        "per second",
        "operations",
        reads=True,
        timed=True,
    ),
}
