"""One run: nothing of the last in memory, the program carried out, its figures held against what the disks did."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from appliance import command
from appliance.benchmarks import (
    claims,
    environment,
    estimate,
    loopback_mount,
    resilver_run,
    sample_data,
    scratch,
    validity,
)
from appliance.benchmarks.case import FROM_MEMORY
from appliance.benchmarks.parse_results import Figures, from_afp, from_bonnie, from_dd, from_fio, from_iperf
from appliance.benchmarks.prefill import Laid
from appliance.benchmarks.progress import HOURS, telling
from appliance.benchmarks.results import VERSIONS, BenchmarkRun, told
from appliance.benchmarks.target import Ground
from appliance.benchmarks.workloads import DATA, KINDS, SYNCED
from appliance.disks.partitions import size_of
from appliance.facts.box import Pool
from appliance.formatting import size_text
from appliance.operation import Work

MOST_WARMUPS = 60  # runs at most until a cache device is warm


@dataclass(frozen=True)
class Measuring:
    """The runs of one case; ``words`` is the command of each, empty for a rebuilding. ``laid`` knows what was laid down."""

    ground: Ground
    words: tuple[str, ...]
    laid: Laid

    def warm(self, work: Work) -> None:
        """The runs that do not count; a cache device is filled until it is warm or full. Raises Failed, Cancelled."""
        case, taken = self.ground.case, 0
        most = max(case.warmups, MOST_WARMUPS) if case.cache else case.warmups
        for number in range(1, most + 1):
            before = environment.moved(case.every)
            self.once(work, f"Warming up, {number} of {'at most ' if case.cache else ''}{most}")
            moved = self.moved(before)
            taken += moved.filling
            if number >= case.warmups and (validity.warm(moved) or taken >= size_of(case.cache)):
                break
        if case.cache:
            work.note(f"{size_text(taken)} went to the cache device in {number} runs that do not count")

    def moved(self, before: dict[str, environment.Moved]) -> validity.Circumstances:
        """What the disks have moved since, and what of it went to the cache device."""
        after, cache = environment.moved(self.ground.devices()), self.ground.case.cache
        filled = {path: done for path, done in after.items() if path == cache}
        return msgspec.structs.replace(
            environment.between(before, after), filling=environment.between(before, filled).written
        )

    def measured(self, work: Work, number: int) -> None:
        """A run that counts, once more where it was disturbed; its result goes into the log. Raises Failed, Cancelled."""
        run = self.judged(work, number)
        if run.disturbed:
            work.note(f"Run {number} was disturbed and is repeated: {' '.join(run.disturbed)}")
            run = self.judged(work, number)
        if number == 1:
            work.note(VERSIONS + json.dumps(environment.versions()))
        work.note(told(run))

    def judged(self, work: Work, number: int) -> BenchmarkRun:
        """One run with what is to be said of it."""
        ground, case = self.ground, self.ground.case
        if case.makes and case.workload != "resilver":
            self.prepare(work)
        throttles, devices = environment.throttled(), ground.devices()
        pools = environment.pools()
        busy, used, began = (
            self.busy(pools, devices),
            environment.use(pools, ground.pool, ground.name, devices),
            time.monotonic(),
        )
        before = environment.moved(devices)
        figures = self.once(work, f"Run {number} of {case.repeats}")
        if case.makes:
            # What was written is counted when it has arrived.
            self.synced(work, f"Run {number} of {case.repeats}")
        moved, seconds, pools = self.moved(before), time.monotonic() - began, environment.pools()
        others = environment.used(used, environment.use(pools, ground.pool, ground.name, devices), seconds)
        circumstances = msgspec.structs.replace(
            moved,
            memory=environment.memory(),
            busy=tuple(dict.fromkeys((*busy, *self.busy(pools, devices), *others))),
            beside=environment.beside(pools, ground.name),
            hottest=environment.hottest(case.every),
            throttled=environment.throttled() - throttles,
            lost=environment.lost(pools, ground.name),
        )
        if case.sample:
            circumstances = msgspec.structs.replace(
                circumstances,
                sample=self.laid.different,
                kept=sample_data.kept(ground),
                deduped=sample_data.times(ground),
            )
        return BenchmarkRun(
            number=number,
            figures=figures,
            around=circumstances,
            invalid=tuple(validity.reasons(case, figures, circumstances)),
            disturbed=tuple(validity.disturbances(circumstances)),
            remarks=tuple(filter(None, (figures.told, *validity.remarks(case, circumstances)))),
        )

    def busy(self, pools: Sequence[Pool], devices: Sequence[str]) -> tuple[str, ...]:
        """What else goes on now that takes from a run: long work of pools, a self-test of a disk that is measured."""
        return (*environment.busy(pools, self.ground.name), *environment.testing(devices))

    def prepare(self, work: Work) -> None:
        """As ``forget``; through a protocol, server and client are made anew, so that neither remembers anything."""
        ground, protocol = self.ground, self.ground.case.protocol
        folder = scratch.folder_of(ground.token)
        if protocol:
            loopback_mount.end(folder, ground.token)
        self.forget(work)
        if protocol == "nfs" and (units := loopback_mount.asleep()):
            claims.write(msgspec.structs.replace(ground.made, units=units))
            loopback_mount.start_nfs()
        if protocol:
            loopback_mount.begin(protocol, folder, ground.token)

    def forget(self, work: Work) -> None:
        """Nothing of the last run in memory, nor, where files are made, on disk. A warm cache device stays warm."""
        case, token = self.ground.case, self.ground.token
        if case.volblocksize and not KINDS[case.workload].laid:
            scratch.wait_for_volume(case, token)
            command.run(["blkdiscard", "-f", self.ground.place], timeout=scratch.LONG)
        if not KINDS[case.workload].laid:
            for path in scratch.folder_of(token).iterdir():
                if path.is_file() and (path.name == DATA or path.name.startswith("larder.")):
                    path.unlink()
        if not case.warmups:
            out, back = scratch.forgetting(case, token)
            work.stop_if_asked()
            scratch.leave(out)
            work.stop_if_asked()
            scratch.come_back(case, back)
            if case.volblocksize:
                scratch.wait_for_volume(case, token)

    def once(self, work: Work, doing: str) -> Figures:
        """Carry the program out, and understand what it says. Raises Failed, Cancelled."""
        case = self.ground.case
        if case.workload == "resilver":
            return resilver_run.rebuilt(self.ground, work, doing)
        if case.sample and case.workload in FROM_MEMORY:
            return sample_data.written(self.ground, work, doing).with_more(self.synced(work, doing))
        look = telling(self.ground, work, doing, estimate.of_run(case))
        # iperf3 says what went wrong in its JSON, and ends with status 1; so does Larder's client of AFP.
        accept = (0, 1) if case.where == "network" or case.protocol == "afp" else (0,)
        result = command.run(self.words, timeout=HOURS, accept=accept, meanwhile=look)
        if case.where == "network":
            return from_iperf(result.stdout)
        if case.workload == "bonnie":
            return from_bonnie(result.stdout)
        if case.workload.startswith("dd-"):
            found = from_dd(result.stderr, reading=case.workload == "dd-read")
        elif case.protocol == "afp":
            found = from_afp(result.stdout, result.stderr)
        else:
            found = from_fio(result.stdout)
        return found.with_more(self.synced(work, doing)) if case.workload in SYNCED else found

    def synced(self, work: Work, doing: str) -> float:
        """Wait until what was written has arrived; the seconds that it took."""
        began = time.monotonic()
        look = telling(self.ground, work, doing, estimate.of_run(self.ground.case))
        command.run(self.ground.syncing, timeout=HOURS, meanwhile=look)
        return time.monotonic() - began
