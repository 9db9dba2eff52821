"""The operation that tests some regions of an empty disk: each is written, read back and compared.

A burn-in is a row of such jobs (``workers/burn_in.py``). The results are lines in the job's log, one for each region,
so what was tested before a crash counts, and the next job begins with the first region that has none.
"""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from appliance import command, names
from appliance.benchmarks.environment import DiskIo, read_io
from appliance.burn_in import regions
from appliance.burn_in.regions import Problem, Region, RegionResult
from appliance.burn_in.verification import parse_answer, read_command, write_command
from appliance.disks.erase import confirm_text
from appliance.disks.exclusive_disk import GONE, ExclusiveDisk
from appliance.disks.inventory import missing_disk
from appliance.disks.probe import inspect_disk
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Disk, Facts
from appliance.formatting import disk_label, disk_size, link_label, rate_text
from appliance.layout.geometry import MIB
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, if_lost

SLOWEST = MIB // 4  # bytes a second; a disk that needs longer for a region has hung
LEAST_SECONDS = 3600.0
LEAST_RATE, MOST_REGIONS_A_JOB = MIB, 20


class BurnInDisk(Operation, tag="burn-in-disk"):
    """Write ``count`` regions of an empty disk of ``size`` bytes from number ``first`` on, and read each back.

    ``rate``: at most so many bytes a second, 0 for no limit.
    """

    needs_proof = if_lost  # it takes empty disks only, so nothing is lost: like a benchmark on an empty disk

    disk: str
    size: int
    first: int = 0
    count: int = 1
    rate: int = 0

    def __post_init__(self) -> None:
        names.by_id(self.disk, field="disk")
        number = len(regions.split_disk(self.size))
        if not (0 <= self.first < number and 1 <= self.count <= min(MOST_REGIONS_A_JOB, number - self.first)):
            raise Refused(Reason("burn-in-region-missing", "The disk has no such regions. Start a new burn-in."))
        if self.rate and not LEAST_RATE <= self.rate <= 2**40:
            raise Refused(
                Reason("burn-in-rate-invalid", "Choose a limit of at least {least}.", least=rate_text(LEAST_RATE))
            )

    @property
    def title(self) -> str:
        return Message("Burn-in: write and read back {disk}", disk=link_label(self.disk.rsplit("/", 1)[-1]))

    @property
    def subject(self) -> str:
        return self.disk

    @property
    def regions(self) -> Sequence[Region]:
        return regions.split_disk(self.size)[self.first : self.first + self.count]

    def locks(self) -> tuple[str, ...]:
        return (self.disk,)

    def disks_taken(self) -> tuple[str, ...]:
        return (self.disk,)

    def lasts(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        disk = facts.disk(self.disk)
        if disk is None:
            yield missing_disk(self.disk)
            return
        if disk.size != self.size:
            yield Reason(
                "burn-in-size-changed",
                "{disk} has {now}, and had {before} when its burn-in began. Start a new burn-in.",
                field="disk",
                disk=disk_label(disk),
                now=disk_size(disk.size),
                before=disk_size(self.size),
            )
        if disk.uses:
            yield Reason(
                "burn-in-disk-in-use",
                "{disk} {use}, so it is not written to. Only an empty disk can be tested by writing.",
                field="disk",
                disk=disk_label(disk),
                use=disk.uses[0].text,
            )

    def plan(self, facts: Facts) -> Plan:
        disk = facts.disk(self.disk)
        assert disk is not None  # noqa: S101  # check said so
        label = disk_label(disk)
        return Plan(
            summary=Message(
                "{disk} is written and read back from {start} to {end} of {size}. It is empty, and counts as "
                "empty afterwards.",
                disk=label,
                start=disk_size(self.regions[0].start),
                end=disk_size(self.regions[-1].end),
                size=disk_size(self.size),
            ),
            steps=tuple(self.region_step(region, disk) for region in self.regions),
            identity={"operation": msgspec.to_builtins(self), "disk": disk.identity},
            undo=Message("Nothing that anybody stored is on the disk."),
            details={Message("Serial number"): confirm_text(disk), Message("Size"): disk_size(disk.size)},
        )

    def region_step(self, region: Region, disk: Disk) -> Step:
        commands = [build(region, self.disk, seed=0, rate=self.rate) for build in (write_command, read_command)]
        shown = "\n".join(["# with another seed each time", *map(shlex.join, commands)])
        title = Message("Write and read back {place}", place=regions.span_text(region))
        return Step(
            f"region-{region.number}", title, shown, lambda work: self.run_region(region, disk, work), (disk.path,)
        )

    def run_region(self, region: Region, disk: Disk, work: Work) -> None:
        """Test one region and note what was found. Raises Failed where nothing can be known, Cancelled."""
        seed, written, read = secrets.randbelow(2**31) + 1, 0, 0
        with ExclusiveDisk(disk.path) as target:
            if target.size != disk.size:
                raise Failed(GONE)
            # Held exclusively, so nobody can put anything on it between this look and the writing.
            if use := inspect_disk(disk):
                raise Failed(Message("The disk {text}. Nothing more was written to it", text=use.text))
            written, problem, at = self.run_fio(write_command, region, target, seed, work)
            if not problem:
                read, problem, at = self.run_fio(read_command, region, target, seed, work)
            if problem and target.is_gone():
                raise Failed(GONE)
        found = RegionResult(number=region.number, written=written, read=read, problem=problem, at=at, rate=self.rate)
        work.note(regions.encode_result(found))

    def run_fio(
        self, build: Callable[..., list[str]], region: Region, target: ExclusiveDisk, seed: int, work: Work
    ) -> tuple[int, Problem, int]:
        """Run fio on the disk that is held, whatever its name leads to now. Raises Failed, Cancelled."""
        argv = build(region, f"/proc/self/fd/{target.handle}", seed=seed, rate=self.rate)
        look = self.progress_reporter(region, work, reading=build is read_command)
        longest = LEAST_SECONDS + region.size / min(self.rate or SLOWEST, SLOWEST)
        try:
            result = command.run(argv, timeout=longest, accept=(0, 1), meanwhile=look, holding=target.handle)
        except command.CommandFailed as error:
            raise Failed(GONE if target.is_gone() else Message("fio could not test the disk"), str(error)) from error
        if result.status and target.is_gone():
            raise Failed(GONE, result.stderr[:400])
        return parse_answer(region, result)

    def progress_reporter(self, region: Region, work: Work, *, reading: bool) -> Callable[[], None]:
        """A function to call every second while fio runs: it reports how far it is, and raises Cancelled."""
        began = before = read_io([self.disk]).get(self.disk, DiskIo())
        at, total = time.monotonic(), len(regions.split_disk(self.size))

        def look() -> None:
            nonlocal before, at
            work.stop_if_asked()
            now, moment = read_io([self.disk]).get(self.disk, before), time.monotonic()
            done = now.read - began.read if reading else now.written - began.written
            moved = now.read - before.read if reading else now.written - before.written
            speed = rate_text(round(moved / max(moment - at, 0.1)))
            before, at = now, moment
            percent = min(99, (region.size * reading + done) * 50 // region.size)
            number = region.number + 1
            doing = (
                Message("Region {number} of {total}: reading back, {speed}", number=number, total=total, speed=speed)
                if reading
                else Message("Region {number} of {total}: writing, {speed}", number=number, total=total, speed=speed)
            )
            work.progress(percent, doing)

        return look

    def probe(self, step: str, facts: Facts) -> bool:
        # Nothing on the disk says that it was read back, so an interrupted region is always tested again.
        return False

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.disk(self.disk) is None:
            return Message(
                "The disk does not answer any more. Look at its cables, or put it back; then resume its burn-in."
            )
        return Message("What was tested so far counts. The burn-in goes on with the region that was interrupted.")
