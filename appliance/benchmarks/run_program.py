"""Runs of a case: drop caches, run the program, and compare its figures with the I/O of the disks."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import msgspec

from appliance import command
from appliance.benchmarks import (
    environment,
    estimate,
    loopback_mount,
    resilver_run,
    sample_data,
    scratch,
    scratch_claim,
    validity,
)
from appliance.benchmarks.case import FROM_MEMORY
from appliance.benchmarks.parse_results import Figures, from_afp, from_bonnie, from_dd, from_fio, from_iperf
from appliance.benchmarks.prefill import Prefill
from appliance.benchmarks.progress import HOURS, progress_reporter
from appliance.benchmarks.results import VERSIONS, BenchmarkRun, encode_run
from appliance.benchmarks.target import BenchmarkTarget
from appliance.benchmarks.workloads import DATA, KINDS, SYNCED
from appliance.disks.partitions import size_of
from appliance.facts.box import Pool
from appliance.formatting import binary_text
from appliance.message import Message, join_messages
from appliance.operation import Work

MOST_WARMUPS = 60  # most runs to fill a cache device


class CaseRunner(msgspec.Struct, frozen=True):
    """The runs of one case. ``words`` is the command of each run, empty for a resilver."""

    target: BenchmarkTarget
    words: tuple[str, ...]
    prefilled: Prefill

    def run_warmups(self, work: Work) -> None:
        """Run the warm-up runs; a cache device is filled until it is warm or full. Raises Failed, Cancelled."""
        case, taken = self.target.case, 0
        most = max(case.warmups, MOST_WARMUPS) if case.cache else case.warmups
        for number in range(1, most + 1):
            before = environment.read_io(case.all_disks)
            self.run_program(
                work,
                Message("Warming up, {number} of at most {most}", number=number, most=most)
                if case.cache
                else Message("Warming up, {number} of {most}", number=number, most=most),
            )
            moved = self.io_since(before)
            taken += moved.filling
            if number >= case.warmups and (validity.is_cache_warm(moved) or taken >= size_of(case.cache)):
                break
        if case.cache:
            work.note(
                Message(
                    "{size} went to the cache device in {number} runs that do not count",
                    size=binary_text(taken),
                    number=number,
                )
            )

    def io_since(self, before: dict[str, environment.DiskIo]) -> validity.Circumstances:
        """I/O of the disks since ``before``, and how much went to the cache device."""
        after, cache = environment.read_io(self.target.device_paths()), self.target.case.cache
        filled = {path: done for path, done in after.items() if path == cache}
        return msgspec.structs.replace(
            environment.io_between(before, after), filling=environment.io_between(before, filled).written
        )

    def run_and_record(self, work: Work, number: int) -> None:
        """Run once, or twice if disturbed, and write the result to the job's log. Raises Failed, Cancelled."""
        run = self.measure_run(work, number)
        if run.disturbed:
            work.note(
                Message(
                    "Run {number} was disturbed and is repeated: {why}", number=number, why=join_messages(run.disturbed)
                )
            )
            run = self.measure_run(work, number)
        if number == 1:
            work.note(VERSIONS + json.dumps(environment.read_versions()))
        work.note(encode_run(run))

    def measure_run(self, work: Work, number: int) -> BenchmarkRun:
        """Measure one run, and judge whether it counts."""
        target, case = self.target, self.target.case
        if case.makes_folder and case.workload != "resilver":
            self.prepare_run(work)
        throttles, devices = environment.read_throttle_count(), target.device_paths()
        pools = environment.read_pools()
        busy, used, began = (
            self.other_activity(pools, devices),
            environment.read_other_io(pools, target.pool, target.name, devices),
            time.monotonic(),
        )
        before = environment.read_io(devices)
        doing = Message("Run {number} of {repeats}", number=number, repeats=case.repeats)
        figures = self.run_program(work, doing)
        if case.makes_folder:
            # Written data counts once it is on the disks.
            self.sync_pool(work, doing)
        moved, seconds, pools = self.io_since(before), time.monotonic() - began, environment.read_pools()
        others = environment.describe_other_io(
            used, environment.read_other_io(pools, target.pool, target.name, devices), seconds
        )
        circumstances = msgspec.structs.replace(
            moved,
            memory=environment.read_memory_limit(),
            busy=tuple(dict.fromkeys((*busy, *self.other_activity(pools, devices), *others))),
            beside=environment.has_other_scratch_pool(pools, target.name),
            hottest=environment.hottest_disk(case.all_disks),
            throttled=environment.read_throttle_count() - throttles,
            lost=environment.lost_devices(pools, target.name),
        )
        if case.sample:
            circumstances = msgspec.structs.replace(
                circumstances,
                sample=self.prefilled.unique_bytes,
                kept=sample_data.compressed_share(target),
                deduped=sample_data.read_dedup_ratio(target),
            )
        return BenchmarkRun(
            number=number,
            figures=figures,
            around=circumstances,
            invalid=tuple(validity.invalid_reasons(case, figures, circumstances)),
            disturbed=tuple(validity.find_disturbances(circumstances)),
            remarks=tuple(filter(None, (figures.told, *validity.run_remarks(case, circumstances)))),
        )

    def other_activity(self, pools: Sequence[Pool], devices: Sequence[str]) -> tuple[str, ...]:
        """Other work that slows a run: long work of pools, self-tests of its disks."""
        return (*environment.running_pool_work(pools, self.target.name), *environment.running_selftests(devices))

    def prepare_run(self, work: Work) -> None:
        """Drop caches; with a share protocol, restart its server and client too, so that neither caches anything."""
        target, protocol = self.target, self.target.case.protocol
        folder = scratch.scratch_folder(target.token)
        if protocol:
            loopback_mount.unmount_folder(folder, target.token)
        self.drop_caches(work)
        if protocol == "nfs" and (units := loopback_mount.stopped_units()):
            scratch_claim.write_claim(msgspec.structs.replace(target.claim, units=units))
            loopback_mount.start_nfs()
        if protocol:
            loopback_mount.mount_folder(protocol, folder, target.token)

    def drop_caches(self, work: Work) -> None:
        """Drop the last run's data from memory, and its files from disk. A filled cache device stays filled."""
        case, token = self.target.case, self.target.token
        if case.volblocksize and not KINDS[case.workload].needs_file:
            scratch.wait_for_volume(case, token)
            command.run(["blkdiscard", "-f", self.target.place], timeout=scratch.LONG)
        if not KINDS[case.workload].needs_file:
            for path in scratch.scratch_folder(token).iterdir():
                if path.is_file() and (path.name == DATA or path.name.startswith("larder.")):
                    path.unlink()
        if not case.warmups:
            out, back = scratch.remount_commands(case, token)
            work.stop_if_asked()
            scratch.run_when_idle(out)
            work.stop_if_asked()
            scratch.run_when_disks_return(case, back)
            if case.volblocksize:
                scratch.wait_for_volume(case, token)

    def run_program(self, work: Work, doing: str) -> Figures:
        """Run the program and parse its output. Raises Failed, Cancelled."""
        case = self.target.case
        if case.workload == "resilver":
            return resilver_run.measure_resilver(self.target, work, doing)
        if case.sample and case.workload in FROM_MEMORY:
            return sample_data.write_measured(self.target, work, doing).with_extra_seconds(self.sync_pool(work, doing))
        look = progress_reporter(self.target, work, doing, estimate.run_seconds(case))
        # iperf3 and Larder's AFP client report errors in their JSON and end with status 1.
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
        return found.with_extra_seconds(self.sync_pool(work, doing)) if case.workload in SYNCED else found

    def sync_pool(self, work: Work, doing: str) -> float:
        """Wait until written data is on the disks. Returns the seconds."""
        began = time.monotonic()
        look = progress_reporter(self.target, work, doing, estimate.run_seconds(self.target.case))
        command.run(self.target.sync_command, timeout=HOURS, meanwhile=look)
        return time.monotonic() - began
