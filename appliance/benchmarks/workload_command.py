"""The command of each workload, by whichever program runs it. Builds argument lists and runs nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from appliance.benchmarks.case import Case
from appliance.benchmarks.fio_command import FIO, compression_options, disk_command, fio_options, sequential_options
from appliance.benchmarks.workloads import DATA
from appliance.layout.geometry import MIB

# Own loopback, mounts and processes; slave, so that unmounts elsewhere happen here too.
APART = ("unshare", "--mount", "--propagation=slave", "--net", "--pid", "--fork", "--kill-child")
GENTLY = ("nice", "-n", "19", "ionice", "-c", "3")


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
    return [
        *(GENTLY if case.gentle else ()),
        *FIO,
        *compression_options(case),
        *sequential_options("write", case, folder),
        "--end_fsync=1",
    ]


def fill_command(folder: str, size: int, gentle: bool = False) -> list[str]:
    """The command that writes ``size`` bytes to a pool before one of its disks is rebuilt."""
    return [
        *(GENTLY if gentle else ()),
        *FIO,
        f"--directory={folder}",
        f"--filename={DATA}",
        "--rw=write",
        f"--bs={MIB}",
        f"--size={size}",
        "--end_fsync=1",
    ]


def sample_copy_command(
    part: Path, folder: str, at: int, size: int, *, gentle: bool = False, sync: bool = False
) -> list[str]:
    """The command that writes ``size`` bytes of a sample to the file at offset ``at``, both in whole MiB."""
    blocks = ["bs=1M", f"count={size // MIB}", f"seek={at // MIB}"]
    conversions = "conv=notrunc,fsync" if sync else "conv=notrunc"
    return [*(GENTLY if gentle else ()), "dd", f"if={part}", f"of={folder}/{DATA}", *blocks, conversions]


def dd_command(case: Case, folder: str) -> list[str]:
    file, count = f"{folder}/{DATA}", case.size // MIB
    if case.workload == "dd-read":
        return ["dd", f"if={file}", "of=/dev/null", "bs=1M"]
    source = "/dev/zero" if case.zeros else "/dev/urandom"
    return ["dd", f"if={source}", f"of={file}", "bs=1M", f"count={count}", *(["conv=fsync"] if case.protocol else [])]


def bonnie_command(case: Case, folder: str) -> list[str]:
    """bonnie++(8) without its slow per-character test (``-f``) and without its check of memory (``-r 0``)."""
    return [
        "bonnie++",
        "-d",
        folder,
        "-s",
        str(case.size // MIB),
        "-r",
        "0",
        "-n",
        "1",
        "-f",
        "-u",
        "root",
        "-q",
        "-m",
        "larder",
    ]


def afp_command(case: Case, folder: str) -> list[str]:
    """The command of Larder's own AFP client (``afp_benchmark.py``), which also serves the folder."""
    program = [sys.executable, "-I", "-m", "appliance.benchmarks.afp_benchmark", case.workload, folder]
    compressible = [f"--compressible={case.compressible}"] if case.compressible else []
    if case.workload == "small-files":
        return [*program, f"--writers={case.writers}", *compressible]
    return [*program, f"--size={case.size}", *compressible]
