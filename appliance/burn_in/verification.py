"""Write a region with fio and read it back: the commands, and what fio's answer means.

Every 4 KiB are written with a header that has its own offset, a checksum, and the seed of this run. So a sector that
was written elsewhere, changed, or not written at all is found, also where an earlier burn-in left the same pattern
(fio(1), ``verify``). The ends of the disk are written with zeros and compared with zeros.
"""

from __future__ import annotations

import re

from appliance import command
from appliance.benchmarks.fio_command import escape_colons
from appliance.benchmarks.parse_results import from_fio
from appliance.burn_in.regions import Problem, Region
from appliance.errors import Failed
from appliance.message import Message

BLOCK = 4096  # bytes with a header of their own
# ``allow_file_create``: where the disk has gone, fio must not make an ordinary file of that name.
FIO = (
    "nice",
    "-n",
    "19",
    "fio",
    "--output-format=json",
    "--name=larder",
    "--thread",
    "--ioengine=libaio",
    "--iodepth=4",
    "--direct=1",
    "--allow_file_create=0",
    "--verify_state_save=0",
)
HEADERS = (f"--verify_interval={BLOCK}", "--verify=crc32c", "--verify_header_seed=1")
# What fio 3.39 writes to standard error: the kernel refused a request, or what came back is not what was written.
REFUSED = re.compile(r"^fio: io_u error.*: (read|write) offset=(\d+), buflen=\d+", re.MULTILINE)
DIFFERS = re.compile(r"^(?:\w+: verify failed|verify: bad .*) at file .* offset (\d+), length \d+", re.MULTILINE)


def write_command(region: Region, file: str, *, seed: int, rate: int = 0) -> list[str]:
    """The command that writes a region; ``rate`` in bytes a second, 0 for no limit."""
    how = ["--zero_buffers"] if region.is_edge else [*HEADERS, "--do_verify=0", f"--randseed={seed}"]
    return [*FIO, *target_options(region, file, rate), "--rw=write", "--end_fsync=1", *how]


def read_command(region: Region, file: str, *, seed: int, rate: int = 0) -> list[str]:
    """The command that reads a region back and compares each block with what was written."""
    how = ["--verify=pattern", "--verify_pattern=0x00"] if region.is_edge else [*HEADERS, f"--randseed={seed}"]
    return [*FIO, *target_options(region, file, rate), "--rw=read", "--verify_fatal=1", *how]


def target_options(region: Region, file: str, rate: int) -> list[str]:
    """fio's options for the place on the disk. An end is written in blocks that fit its length exactly."""
    block = "1M" if not region.is_edge else str(BLOCK if region.size % BLOCK == 0 else 512)
    limit = [f"--rate={rate}"] if rate else []
    return [
        f"--filename={escape_colons(file)}",
        f"--offset={region.start}",
        f"--size={region.size}",
        f"--bs={block}",
        *limit,
    ]


def parse_answer(region: Region, result: command.Result) -> tuple[int, Problem, int]:
    """The speed in bytes a second, what went wrong first, and at which byte of the disk; 0, ""
    and 0 where it does not apply.

    Raises Failed where fio did not do what it was asked, so that nothing is known about the disk.
    """
    refused = [(int(at), way) for way, at in REFUSED.findall(result.stderr)]
    differs = [(int(at), "changed") for at in DIFFERS.findall(result.stderr)]
    if found := sorted(refused + differs):
        at, what = found[0]
        problem: Problem = "read" if what == "read" else "write" if what == "write" else "changed"
        return 0, problem, at
    if result.status:
        raise Failed(Message("fio could not test the disk"), result.stderr[:400] or result.stdout[:400])
    figures = from_fio(result.stdout)
    if max(figures.read, figures.written) != region.size:
        raise Failed(Message("fio ended before the end of the region"), result.stderr[:400])
    return round(figures.rate), "", 0
