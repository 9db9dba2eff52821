"""Workloads: their names, units and commands. Builds argument lists and runs nothing.

fio's options are those of fio 3.39 (fio(1)). ZFS caches with ``direct=1`` too, so it is not used. ``refill_buffers`` and
``randrepeat=0`` keep data and offsets from repeating. Jobs are threads, because fio's processes each start their own
session (fio's ``backend.c``) and would go on writing after fio was ended.

The time of large files includes ``zpool sync`` (``SYNCED``). An fsync at their end would use the log device, and
the result would wrongly say that it helps.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from appliance.benchmarks.case import Case
from appliance.layout.geometry import KIB, MIB

Unit = Literal["B/s", "per second", "seconds"]
SMALL = 4 * KIB
FILES, FILE_SIZE = 1000, 512  # many small files, of this many bytes each
LEAST_BLOCK = 64 * KIB  # least size of a write, even with smaller records
DATA = "data"  # name of the file in the scratch folder
FIO = ("fio", "--output-format=json", "--name=larder", "--thread", "--ioengine=psync", "--fallocate=none", "--randrepeat=0", "--refill_buffers", "--group_reporting")  # fmt: skip
SYNCED = ("seq-write", "dd-write")  # end only after ``zpool sync``
# Own loopback, mounts and processes; slave, so that unmounts elsewhere happen here too.
APART = ("unshare", "--mount", "--propagation=slave", "--net", "--pid", "--fork", "--kill-child")
GENTLY = ("nice", "-n", "19", "ionice", "-c", "3")


@dataclass(frozen=True)
class WorkloadKind:
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
    "seq-write": WorkloadKind("Large files, writing", "One large file is written from its beginning to its end.", "B/s", "rate", writes=True),
    "seq-read": WorkloadKind("Large files, reading", "One large file is read from its beginning to its end.", "B/s", "rate", reads=True, needs_file=True),
    "dd-write": WorkloadKind("dd, writing", "What dd writes, as in the tables that people post.", "B/s", "rate", writes=True),
    "dd-read": WorkloadKind("dd, reading", "What dd reads back.", "B/s", "rate", reads=True, needs_file=True),
    "random-read": WorkloadKind("Small reads all over", "4 KiB are read here and there, as a database or a virtual machine does.", "per second", "operations", reads=True, timed=True, needs_file=True),
    "random-write": WorkloadKind("Small writes all over", "4 KiB are written here and there.", "per second", "operations", writes=True, timed=True, needs_file=True),
    "mixed": WorkloadKind("Small reads and writes", "Seven reads to three writes of 4 KiB.", "per second", "operations", reads=True, writes=True, timed=True, needs_file=True),
    "sync-write": WorkloadKind("Small writes that are waited for", "4 KiB each, on disk before the next: NFS, databases, virtual machines.", "per second", "operations", writes=True, timed=True),
    "small-files": WorkloadKind("Many small files", "1,000 files of 512 bytes by each writer, each safe on disk before the next.", "per second", "operations", writes=True),
    "resilver": WorkloadKind("Rebuilding a disk", "How long it takes until a replaced disk holds its part again.", "seconds", "seconds", writes=True),
    "bonnie": WorkloadKind("bonnie++", "Large files in blocks, seeks, and 1,024 files without content, for those who compare with old results. What is compared is writing in blocks.", "B/s", "rate", reads=True, writes=True),
    "net-send": WorkloadKind("Sending over the network", "From this box to the other computer, without any disk.", "B/s", "rate", timed=True),
    "net-receive": WorkloadKind("Receiving over the network", "From the other computer to this box, without any disk.", "B/s", "rate", timed=True),
    "disk-start": WorkloadKind("Reading at the start", "The outer tracks, where a disk with platters is fastest.", "B/s", "rate", reads=True),
    "disk-middle": WorkloadKind("Reading in the middle", "Half way through the disk.", "B/s", "rate", reads=True),
    "disk-end": WorkloadKind("Reading at the end", "The inner tracks, where a disk with platters is slowest.", "B/s", "rate", reads=True),
    "disk-latency": WorkloadKind("Finding one place", "4 KiB from here and there, one at a time.", "per second", "operations", reads=True, timed=True),
}  # fmt: skip
PLACES = {"disk-start": 0.0, "disk-middle": 0.5, "disk-end": 1.0}


def afp_command(case: Case, folder: str) -> list[str]:
    """The command of Larder's own AFP client (``afp_benchmark.py``), which also serves the folder."""
    program = [sys.executable, "-I", "-m", "appliance.benchmarks.afp_benchmark", case.workload, folder]
    compressible = [f"--compressible={case.compressible}"] if case.compressible else []
    if case.workload == "small-files":
        return [*program, f"--writers={case.writers}", *compressible]
    return [*program, f"--size={case.size}", *compressible]


def target_options(case: Case, folder: str) -> list[str]:
    """fio's options for the file in the folder, or for the device of a volume, bypassing the page cache."""
    if case.volblocksize:
        return ["--direct=1", f"--filename={escape_colons(folder)}"]
    return [f"--directory={folder}", f"--filename={DATA}"]


def workload_command(case: Case, folder: str, disk_size: int = 0) -> list[str]:
    """The command of one run, in the scratch folder or on the case's disk of ``disk_size`` bytes."""
    gently = GENTLY if case.gentle else ()
    if case.workload.startswith("dd-"):
        return [*gently, *dd_command(case, folder)]
    if case.where == "disk":
        return [*gently, *disk_command(case, disk_size)]
    if case.where == "network":
        back = ["--reverse"] if case.workload == "net-receive" else []
        return [
            "iperf3",
            "--json",
            f"--time={case.seconds}",
            f"--parallel={case.writers}",
            *back,
            f"--client={case.peer}",
        ]
    if case.workload == "bonnie":
        return [*gently, *bonnie_command(case, folder)]
    if case.protocol == "afp":
        return [*gently, *APART, *afp_command(case, folder)]
    return [*gently, *FIO, *compression_options(case), *fio_options(case, folder)]


def prefill_command(case: Case, folder: str) -> list[str]:
    """The command that writes the file which the runs read or overwrite."""
    return [*(GENTLY if case.gentle else ()), *FIO, *compression_options(case), *sequential_options("write", case, folder), "--end_fsync=1"]  # fmt: skip


def sample_copy_command(
    part: Path, folder: str, at: int, size: int, *, gentle: bool = False, sync: bool = False
) -> list[str]:
    """The command that writes ``size`` bytes of a sample to the file at offset ``at``, both in whole MiB."""
    blocks = ["bs=1M", f"count={size // MIB}", f"seek={at // MIB}"]
    conversions = "conv=notrunc,fsync" if sync else "conv=notrunc"
    return [*(GENTLY if gentle else ()), "dd", f"if={part}", f"of={folder}/{DATA}", *blocks, conversions]


def fill_command(folder: str, size: int, gentle: bool = False) -> list[str]:
    """The command that writes ``size`` bytes to a pool before one of its disks is rebuilt."""
    return [*(GENTLY if gentle else ()), *FIO, f"--directory={folder}", f"--filename={DATA}", "--rw=write", f"--bs={MIB}", f"--size={size}", "--end_fsync=1"]  # fmt: skip


def compression_options(case: Case) -> list[str]:
    return [f"--buffer_compress_percentage={case.compressible}"] if case.compressible else []


def sequential_options(direction: str, case: Case, folder: str) -> list[str]:
    block = max(case.volblocksize or case.recordsize, LEAST_BLOCK)
    return [*target_options(case, folder), f"--rw={direction}", f"--bs={block}", f"--size={case.size}"]


def fio_options(case: Case, folder: str) -> list[str]:
    timed = ["--time_based", f"--runtime={case.seconds}"]
    small = [*target_options(case, folder), f"--bs={SMALL}", f"--size={case.size}", f"--numjobs={case.writers}", *timed]  # fmt: skip
    match case.workload:
        case "seq-write":
            # A client of a share caches written data until fsync.
            return [*sequential_options("write", case, folder), *(["--end_fsync=1"] if case.protocol else [])]
        case "seq-read":
            return sequential_options("read", case, folder)
        case "random-read":
            return [*small, "--rw=randread"]
        case "random-write":
            return [*small, "--rw=randwrite", "--end_fsync=1"]
        case "mixed":
            return [*small, "--rw=randrw", "--rwmixread=70", "--end_fsync=1"]
        case "sync-write":
            if case.volblocksize:
                return [*small, "--rw=write", "--sync=1"]
            return [f"--directory={folder}", f"--bs={SMALL}", f"--size={case.size // case.writers // SMALL * SMALL}", f"--numjobs={case.writers}", "--rw=write", "--sync=1", *timed]  # fmt: skip
        case _:
            return [
                f"--directory={folder}", "--rw=write", f"--bs={FILE_SIZE}", f"--filesize={FILE_SIZE}", f"--nrfiles={FILES}",
                f"--numjobs={case.writers}", "--openfiles=1", "--file_service_type=sequential", "--create_on_open=1",
                "--fsync_on_close=1", "--unlink=1",
            ]  # fmt: skip


def disk_command(case: Case, disk_size: int) -> list[str]:
    """The command that reads one raw disk: read-only, and past the page cache."""
    words = [*FIO, "--readonly", "--direct=1", f"--filename={escape_colons(case.disks[0])}"]
    size = min(case.size, disk_size // 4 // MIB * MIB)
    if case.workload == "disk-latency":
        return [*words, "--rw=randread", f"--bs={SMALL}", "--norandommap", f"--size={disk_size // MIB * MIB}", "--time_based", f"--runtime={case.seconds}"]  # fmt: skip
    start = int((disk_size - size) * PLACES[case.workload]) // MIB * MIB
    return [*words, "--rw=read", f"--bs={MIB}", f"--offset={start}", f"--size={size}"]


def escape_colons(path: str) -> str:
    """Escape colons, which separate names of files in fio (fio(1), ``filename``)."""
    return path.replace(":", "\\:")


def dd_command(case: Case, folder: str) -> list[str]:
    file, count = f"{folder}/{DATA}", case.size // MIB
    if case.workload == "dd-read":
        return ["dd", f"if={file}", "of=/dev/null", "bs=1M"]
    source = "/dev/zero" if case.zeros else "/dev/urandom"
    return ["dd", f"if={source}", f"of={file}", "bs=1M", f"count={count}", *(["conv=fsync"] if case.protocol else [])]


def bonnie_command(case: Case, folder: str) -> list[str]:
    """bonnie++(8) without its slow per-character test (``-f``) and without its check of memory (``-r 0``)."""
    return ["bonnie++", "-d", folder, "-s", str(case.size // MIB), "-r", "0", "-n", "1", "-f", "-u", "root", "-q", "-m", "larder"]  # fmt: skip
