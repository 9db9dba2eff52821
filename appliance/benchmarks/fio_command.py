"""fio's command lines.

fio's options are those of fio 3.39 (fio(1)). ZFS caches with ``direct=1`` too, so it is not used. ``refill_buffers``
and ``randrepeat=0`` keep data and offsets from repeating. Jobs are threads, because fio's processes each start their
own session (fio's ``backend.c``) and would go on writing after fio was ended.
"""

from __future__ import annotations

from appliance.benchmarks.case import Case
from appliance.benchmarks.workloads import DATA, FILE_SIZE, FILES
from appliance.layout.geometry import KIB, MIB

SMALL = 4 * KIB
LEAST_BLOCK = 64 * KIB  # least size of a write, even with smaller records
FIO = (
    "fio",
    "--output-format=json",
    "--name=larder",
    "--thread",
    "--ioengine=psync",
    "--fallocate=none",
    "--randrepeat=0",
    "--refill_buffers",
    "--group_reporting",
)
PLACES = {"disk-start": 0.0, "disk-middle": 0.5, "disk-end": 1.0}


def target_options(case: Case, folder: str) -> list[str]:
    """fio's options for the file in the folder, or for the device of a volume, bypassing the page cache."""
    if case.volblocksize:
        return ["--direct=1", f"--filename={escape_colons(folder)}"]
    return [f"--directory={folder}", f"--filename={DATA}"]


def compression_options(case: Case) -> list[str]:
    return [f"--buffer_compress_percentage={case.compressible}"] if case.compressible else []


def sequential_options(direction: str, case: Case, folder: str) -> list[str]:
    block = max(case.volblocksize or case.recordsize, LEAST_BLOCK)
    return [*target_options(case, folder), f"--rw={direction}", f"--bs={block}", f"--size={case.size}"]


def fio_options(case: Case, folder: str) -> list[str]:
    timed = ["--time_based", f"--runtime={case.seconds}"]
    small = [*target_options(case, folder), f"--bs={SMALL}", f"--size={case.size}", f"--numjobs={case.writers}", *timed]
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
            return [
                f"--directory={folder}",
                f"--bs={SMALL}",
                f"--size={case.size // case.writers // SMALL * SMALL}",
                f"--numjobs={case.writers}",
                "--rw=write",
                "--sync=1",
                *timed,
            ]
        case _:
            return [
                f"--directory={folder}",
                "--rw=write",
                f"--bs={FILE_SIZE}",
                f"--filesize={FILE_SIZE}",
                f"--nrfiles={FILES}",
                f"--numjobs={case.writers}",
                "--openfiles=1",
                "--file_service_type=sequential",
                "--create_on_open=1",
                "--fsync_on_close=1",
                "--unlink=1",
            ]


def disk_command(case: Case, disk_size: int) -> list[str]:
    """The command that reads one raw disk: read-only, and past the page cache."""
    words = [*FIO, "--readonly", "--direct=1", f"--filename={escape_colons(case.disks[0])}"]
    size = min(case.size, disk_size // 4 // MIB * MIB)
    if case.workload == "disk-latency":
        return [
            *words,
            "--rw=randread",
            f"--bs={SMALL}",
            "--norandommap",
            f"--size={disk_size // MIB * MIB}",
            "--time_based",
            f"--runtime={case.seconds}",
        ]
    start = int((disk_size - size) * PLACES[case.workload]) // MIB * MIB
    return [*words, "--rw=read", f"--bs={MIB}", f"--offset={start}", f"--size={size}"]


def escape_colons(path: str) -> str:
    """Escape colons, which separate names of files in fio (fio(1), ``filename``)."""
    return path.replace(":", "\\:")
