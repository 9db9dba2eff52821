"""A sample of what somebody really keeps: the contents of files in a folder of theirs are what a case is measured with.

Root reads here what a person has chosen, so it reads little and carefully: ordinary files alone, by descriptors, without
following a link and without leaving the dataset (``shares/walk.py``), contents without a name, never more than the case
measures with. What is read goes in parts through a file in memory that only root may open, and from there, by ``dd``, to
the scratch pool and nowhere else.

What is written while it is measured comes from that memory too, a part again and again: the disks of the sample would
otherwise decide how fast it is. So a write of it repeats, and only a file that is laid down to be read can be as varied
as the folder is.
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
from appliance.benchmarks.workloads import DATA, KINDS, sample_copy_command
from appliance.errors import Failed, Refused
from appliance.files import traversal
from appliance.formatting import size_text
from appliance.layout.geometry import MIB
from appliance.operation import Work
from appliance.snapshots.browse import listing
from appliance.zfs import private_mount

PART = 128 * MIB  # bytes that are in memory at a time, at most
OF_ROOM = 2  # and at most one in so many of those that the memory's file system has left
LEAST = 16 * MIB  # bytes: less than this stands for nothing
FILES = (
    16  # a first look takes at most one in so many of the bytes from one file, so that a film does not stand for all
)
CHUNK = MIB
MOST_LINKED = (
    1_000_000  # files with several names that are remembered, so that none is read twice; further ones are left
)
SECONDS_BETWEEN_LOOKS = 1.0


class SampleData:
    """The files below ``root`` as bytes without an end: once through, they begin anew. ``most``: bytes of one turn;
    ``block``: bytes of a record.

    ``different`` are the bytes of the first turn, which nothing before them repeats.
    """

    def __init__(self, root: int, most: int, block: int, look: Callable[[], None]) -> None:
        self.root, self.most, self.block, self.look = root, most, block, look
        self.unique_bytes, self.rest = 0, b""
        self.endless = self.repeat_files()

    def close(self) -> None:
        """Let go of whatever file or folder is held open."""
        self.endless.close()

    def read_chunk(self, wanted: int) -> bytes:
        """The next bytes, at most ``wanted``, never none. Raises Failed where the folder holds too little."""
        self.look()
        chunk = self.rest or next(filter(None, self.endless))
        self.rest = chunk[wanted:]
        return chunk[:wanted]

    def repeat_files(self) -> Generator[bytes]:
        """Turn after turn; the first tells how much there is."""
        for chunk in self.read_files():
            self.unique_bytes += len(chunk)
            yield chunk
        if self.unique_bytes < min(LEAST, self.most):
            raise Failed(f"The folder holds too little to stand for anything: {size_text(self.unique_bytes)} in ordinary files, where it takes {size_text(LEAST)}")  # fmt: skip
        while True:
            empty = True
            for chunk in self.read_files():
                empty = empty and not chunk
                yield chunk
            if empty:
                raise Failed("The files of the sample went away while they were read")

    def read_files(self) -> Iterator[bytes]:
        """The contents of the files, the beginnings of all before the rest of any.

        A file of its own begins a record, and dedup compares records. So a large file gives whole ones and loses the end
        that fills none; small files fill records together.
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
    """Whether a file with several names was met under another; it would look like a block that dedup finds."""
    if status.st_nlink == 1:
        return False
    known = status.st_ino in linked or len(linked) >= MOST_LINKED
    if not known:
        linked.add(status.st_ino)
    return known


def read_content(handle: int, start: int, end: int) -> Iterator[bytes]:
    """What an ordinary file holds between two places; one that cannot be read gives less. Its access time stays."""
    try:
        opened = private_mount.opened(handle, os.O_RDONLY | os.O_NOATIME)
    except OSError:
        return
    try:
        while start < end and (chunk := os.pread(opened, min(CHUNK, end - start), start)):
            start += len(chunk)
            yield chunk
    except OSError:
        return  # a damaged place: what was read before it stands
    finally:
        os.close(opened)


@contextmanager
def open_sample_folder(case: Case) -> Iterator[int]:
    """A descriptor of the chosen folder, looked at anew. Raises Refused where it is not what was chosen, Failed."""
    found = listing.dataset_now(case.sample)
    Refused.unless_empty(checks.check_sample(found, case.sample, case.sample_guid))
    with traversal.open_dir_nofollow(found.mountpoint) as root:
        traversal.refuse_unless_of(root, found.name)
        yield root


def part_size(token: str, case: Case) -> int:
    """Bytes of the sample to keep in memory: whole MiB, and whole records. Raises Failed where there is no room."""
    there = os.statvfs(sample_part_path(token).parent)
    found = (
        min(PART, there.f_bavail * there.f_frsize // OF_ROOM) // max(MIB, case.recordsize) * max(MIB, case.recordsize)
    )
    found = min(found, case.size)
    if not found:
        raise Failed("There is no room in memory for a part of the sample")
    return found


def load_part(token: str, sample: SampleData, size: int) -> None:
    """Have the next ``size`` bytes of the sample in memory. Raises Failed, Cancelled."""
    flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(sample_part_path(token), flags, 0o600), "wb") as out:
            while size:
                chunk = sample.read_chunk(size)
                out.write(chunk)
                size -= len(chunk)
    except OSError as error:
        # Without the name that it carries: that may be a file's.
        raise Failed("The sample could not be read into memory", error.strerror or "") from error


def write_sample(target: BenchmarkTarget, work: Work) -> int:
    """Lay down the file that is read, or have in memory what is written; how many of its bytes nothing repeats.

    Raises Refused, Failed, Cancelled.
    """
    case, token = target.case, target.token
    look = limit_rate(progress_reporter(target, work, "Reading the sample", 2 * estimate.run_seconds(case)))
    part, reads = part_size(token, case), KINDS[case.workload].needs_file
    whole = case.size if reads else part
    with open_sample_folder(case) as root, closing(SampleData(root, whole, case.recordsize, look)) as sample:
        for at in range(0, whole, part):
            size = min(part, whole - at)
            load_part(token, sample, size)
            if reads:
                command.run([*sample_copy_command(sample_part_path(token), target.place, at, size), "conv=notrunc,fsync"], timeout=HOURS, meanwhile=look)  # fmt: skip
    if reads:
        sample_part_path(token).unlink()
    work.note(f"{size_text(sample.unique_bytes)} of the files in {case.sample} are the sample")
    return sample.unique_bytes


def write_measured(target: BenchmarkTarget, work: Work, doing: str) -> Figures:
    """Write what is in memory until the case's size is reached, in the time that dd says it took. Raises Failed, Cancelled."""
    case, part = target.case, sample_part_path(target.token)
    look, held = limit_rate(progress_reporter(target, work, doing, estimate.run_seconds(case))), part.stat().st_size
    seconds = 0.0
    for at in range(0, case.size, held):
        look()  # a part can be written in less time than a program is looked after in
        argv = [*sample_copy_command(part, target.place, at, min(held, case.size - at), case.gentle), "conv=notrunc"]
        result = command.run(argv, timeout=HOURS, meanwhile=look)
        seconds += from_dd(result.stderr, reading=False).seconds
    return Figures(rate=case.size / seconds, seconds=seconds, written=case.size, tool="dd")


def compressed_share(target: BenchmarkTarget) -> float:
    """Of the file's bytes, the part that lies on the disks once it was compressed; parity is not counted (``st_blocks``)."""
    found = Path(target.place, DATA).stat()
    return min(found.st_blocks * 512 / found.st_size, 1.0) if found.st_size else 1.0


def read_dedup_ratio(target: BenchmarkTarget) -> float:
    """How often dedup met each block of the scratch pool, on average. Raises Failed."""
    if not target.case.dedup:
        return 1.0
    said = command.run(["zpool", "list", "-H", "-p", "-o", "dedupratio", "--", target.pool], timeout=60).stdout
    try:
        return max(float(said.strip().rstrip("x")), 1.0)
    except ValueError as error:
        raise Failed("zpool did not say what dedup found", said[:200]) from error


def limit_rate(look: Callable[[], None]) -> Callable[[], None]:
    """``look``, once a second however often it is called: a folder can hold a million small files."""
    last = 0.0

    def look_if_due() -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LOOKS:
            look()
            last = time.monotonic()

    return look_if_due
