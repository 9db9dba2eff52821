"""Sample data: a case can use the contents of files in a folder that the user chose.

Root reads files that a user chose, so it reads as little as possible and carefully: regular files only, by descriptors,
without following links and without leaving the dataset (``files/traversal.py``), without their names, and never more
than the case needs. The data goes in parts through a file in memory that only root can open, and from there, by ``dd``,
to the scratch pool only.

Writes in a run come from that memory too, one part repeatedly, because otherwise the disks of the sample would limit
the speed. So written samples repeat; only a file that is prefilled for reading is as varied as the folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from appliance import command
from appliance.benchmarks import checks, estimate
from appliance.benchmarks.case import Case
from appliance.benchmarks.parse_results import Figures, from_dd
from appliance.benchmarks.progress import HOURS, progress_reporter
from appliance.benchmarks.scratch import sample_part_path
from appliance.benchmarks.target import BenchmarkTarget
from appliance.benchmarks.workload_command import sample_copy_command
from appliance.benchmarks.workloads import DATA, KINDS
from appliance.errors import Failed, Refused
from appliance.files import traversal
from appliance.formatting import binary_text
from appliance.layout.geometry import MIB
from appliance.message import Message
from appliance.operation import Work
from appliance.snapshots.browse import listing
from appliance.zfs import private_mount

PART = 128 * MIB  # most bytes that are in memory at a time
OF_ROOM = 2  # and at most this fraction (1/2) of the free space of the file system in memory
LEAST = 16 * MIB  # bytes; less data is not representative
FILES = 16  # the first pass takes at most this fraction (1/16) of the bytes from one file, so that no film dominates
CHUNK = MIB
MOST_LINKED = 1_000_000  # files with several names to remember, so that none is read twice; others are skipped
SECONDS_BETWEEN_LOOKS = 1.0


class SampleData:
    """The files below ``root`` as an endless stream of bytes that starts again after the last file.

    ``most`` is the number of bytes of one pass, ``block`` the record size. ``unique_bytes`` counts the first pass.
    """

    def __init__(self, root: int, most: int, block: int, look: Callable[[], None]) -> None:
        self.root, self.most, self.block, self.look = root, most, block, look
        self.unique_bytes, self.rest = 0, b""
        self.endless = self.repeat_files()

    def close(self) -> None:
        """Close the open files and folders."""
        self.endless.close()

    def read_chunk(self, wanted: int) -> bytes:
        """The next bytes, at least one and at most ``wanted``. Raises Failed if the folder holds too little."""
        self.look()
        chunk = self.rest or next(filter(None, self.endless))
        self.rest = chunk[wanted:]
        return chunk[:wanted]

    def repeat_files(self) -> Generator[bytes]:
        """Yield pass after pass; the first one counts ``unique_bytes``."""
        for chunk in self.read_files():
            self.unique_bytes += len(chunk)
            yield chunk
        if self.unique_bytes < min(LEAST, self.most):
            raise Failed(
                Message(
                    "The folder is too small for a sample: it has {size} in ordinary files, and {least} are needed",
                    size=binary_text(self.unique_bytes),
                    least=binary_text(LEAST),
                )
            )
        while True:
            empty = True
            for chunk in self.read_files():
                empty = empty and not chunk
                yield chunk
            if empty:
                raise Failed(Message("The files of the sample went away while they were read"))

    def read_files(self) -> Iterator[bytes]:
        """Yield the contents of the files: first the beginning of each, then the rest.

        Dedup compares records, and each file starts a record. So a large file yields whole records only and loses its
        end, and small files fill records together.
        """
        left, block = self.most, self.block
        share = max(self.most // FILES, CHUNK) // block * block or block
        small = b""
        for start, end in ((0, share), (share, self.most)):
            linked: set[int] = set()
            with closing(traversal.walk_tree(self.root)) as found:
                for one in found:
                    self.look()
                    size = one.status.st_size
                    if one.is_folder or size <= start or is_known_link(one.status, linked):
                        continue
                    if size < block:
                        small += b"".join(read_content(one.handle, 0, size))
                        pieces = iter([small[:block]] if len(small) >= block else [])
                        small = small[block:] if len(small) >= block else small
                    else:
                        pieces = read_content(one.handle, start, min(end, size // block * block))
                    for piece in pieces:
                        yield piece[:left]
                        left -= len(piece)
                        if left <= 0:
                            return
        yield small[:left]


def is_known_link(status: os.stat_result, linked: set[int]) -> bool:
    """Whether a file with several names was read under another one. Dedup would count it twice."""
    if status.st_nlink == 1:
        return False
    known = status.st_ino in linked or len(linked) >= MOST_LINKED
    if not known:
        linked.add(status.st_ino)
    return known


def read_content(handle: int, start: int, end: int) -> Iterator[bytes]:
    """Yield a regular file's bytes from ``start`` to ``end``, fewer if it cannot be read. Keeps its access time."""
    try:
        opened = private_mount.reopen_for_reading(handle, os.O_RDONLY | os.O_NOATIME)
    except OSError:
        return
    try:
        while start < end and (chunk := os.pread(opened, min(CHUNK, end - start), start)):
            start += len(chunk)
            yield chunk
    except OSError:
        return  # a damaged block: what was read before it is used
    finally:
        os.close(opened)


@contextmanager
def open_sample_folder(case: Case) -> Iterator[int]:
    """Open the chosen folder and check it again. Raises Refused if it has changed, Failed."""
    found = listing.dataset_now(case.sample)
    Refused.unless_empty(checks.check_sample(found, case.sample, case.sample_guid))
    with traversal.open_dir_nofollow(found.mountpoint) as root:
        traversal.refuse_unless_of(root, found.name)
        yield root


def part_size(token: str, case: Case) -> int:
    """Bytes of the sample to hold in memory: whole MiB and whole records. Raises Failed if there is no room."""
    there = os.statvfs(sample_part_path(token).parent)
    found = (
        min(PART, there.f_bavail * there.f_frsize // OF_ROOM) // max(MIB, case.recordsize) * max(MIB, case.recordsize)
    )
    found = min(found, case.size)
    if not found:
        raise Failed(Message("There is no room in memory for a part of the sample"))
    return found


def load_part(token: str, sample: SampleData, size: int) -> None:
    """Write the next ``size`` bytes of the sample to the file in memory. Raises Failed, Cancelled."""
    flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(sample_part_path(token), flags, 0o600), "wb") as out:
            while size:
                chunk = sample.read_chunk(size)
                out.write(chunk)
                size -= len(chunk)
    except OSError as error:
        # Leave out the error's file name: it may be one of the user's files.
        raise Failed(Message("The sample could not be read into memory"), error.strerror or "") from error


def prefill_command(target: BenchmarkTarget, at: int, size: int) -> list[str]:
    """The command that copies the part in memory to offset ``at`` of the file that the runs read."""
    return sample_copy_command(sample_part_path(target.token), target.place, at, size, sync=True)


def write_command(target: BenchmarkTarget, at: int, size: int) -> list[str]:
    """The command of a run that writes the part in memory to offset ``at`` of the file."""
    return sample_copy_command(sample_part_path(target.token), target.place, at, size, gentle=target.case.gentle)


def write_sample(target: BenchmarkTarget, work: Work) -> int:
    """Prefill the file to read, or load into memory what the runs write. Returns the bytes before it repeats.

    Raises Refused, Failed, Cancelled.
    """
    case, token = target.case, target.token
    look = limit_rate(progress_reporter(target, work, Message("Reading the sample"), 2 * estimate.run_seconds(case)))
    part, reads = part_size(token, case), KINDS[case.workload].needs_file
    whole = case.size if reads else part
    with open_sample_folder(case) as root, closing(SampleData(root, whole, case.recordsize, look)) as sample:
        for at in range(0, whole, part):
            size = min(part, whole - at)
            load_part(token, sample, size)
            if reads:
                command.run(prefill_command(target, at, size), timeout=HOURS, meanwhile=look)
    if reads:
        sample_part_path(token).unlink()
    work.note(
        Message(
            "{size} of the files in {folder} are the sample",
            size=binary_text(sample.unique_bytes),
            folder=case.sample,
        )
    )
    return sample.unique_bytes


def write_measured(target: BenchmarkTarget, work: Work, doing: str) -> Figures:
    """Write the part in memory until the case's size is reached, timed by dd. Raises Failed, Cancelled."""
    case, part = target.case, sample_part_path(target.token)
    look, held = limit_rate(progress_reporter(target, work, doing, estimate.run_seconds(case))), part.stat().st_size
    seconds = 0.0
    for at in range(0, case.size, held):
        look()  # a part can be written faster than ``command.run`` calls ``look``
        argv = write_command(target, at, min(held, case.size - at))
        result = command.run(argv, timeout=HOURS, meanwhile=look)
        seconds += from_dd(result.stderr, reading=False).seconds
    return Figures(rate=case.size / seconds, seconds=seconds, written=case.size, tool="dd")


def compressed_share(target: BenchmarkTarget) -> float:
    """Share of the file's bytes left on the disks after compression, without parity (``st_blocks``)."""
    found = Path(target.place, DATA).stat()
    return min(found.st_blocks * 512 / found.st_size, 1.0) if found.st_size else 1.0


def read_dedup_ratio(target: BenchmarkTarget) -> float:
    """The dedup ratio of the scratch pool. Raises Failed."""
    if not target.case.dedup:
        return 1.0
    said = command.run(["zpool", "list", "-H", "-p", "-o", "dedupratio", "--", target.pool], timeout=60).stdout
    try:
        return max(float(said.strip().rstrip("x")), 1.0)
    except ValueError as error:
        raise Failed(Message("zpool did not say what dedup found"), said[:200]) from error


def limit_rate(look: Callable[[], None]) -> Callable[[], None]:
    """Wrap ``look`` so that it runs once a second at most: a folder can hold a million small files."""
    last = 0.0

    def look_if_due() -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LOOKS:
            look()
            last = time.monotonic()

    return look_if_due
