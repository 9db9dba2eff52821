"""The operation that runs one benchmark case: make the scratch pool or folder, run the workload, clean up.

The results are lines in the job's log, one for each run (``results.RESULT``). After a crash the case is cleaned up
(``cleanup.py``) and run again from the start.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

import msgspec

from appliance.benchmarks import (
    arc_limit,
    checks,
    loopback_mount,
    prefill,
    resilver_run,
    sample_data,
    scratch,
    scratch_claim,
    workload_command,
)
from appliance.benchmarks.case import FROM_MEMORY, Case, memory_for
from appliance.benchmarks.prefill import Prefill
from appliance.benchmarks.run_program import CaseRunner
from appliance.benchmarks.target import BenchmarkTarget
from appliance.benchmarks.workloads import KINDS, SYNCED
from appliance.disks.partitions import Cut, partition_step
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.formatting import binary_text, continue_sentence
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.pools.vdevs import retry


class RunBenchmarkCase(Operation, tag="run-benchmark-case"):
    """Run one benchmark case. ``token``, twelve random hexadecimal digits, is part of the names of what it makes."""

    needs_proof = never

    token: str
    case: Case

    def __post_init__(self) -> None:
        scratch_claim.checked_token(self.token)

    @property
    def target(self) -> BenchmarkTarget:
        return BenchmarkTarget(self.token, self.case)

    @property
    def title(self) -> str:
        return Message("Measure: {what}", what=continue_sentence(KINDS[self.case.workload].title))

    @property
    def subject(self) -> str:
        return self.case.pool or self.case.peer or self.target.name

    def locks(self) -> tuple[str, ...]:
        return (self.target.name, *self.case.all_disks)

    def disks_taken(self) -> tuple[str, ...]:
        return self.case.all_disks if self.case.where == "scratch" else ()

    def files_used(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.case.pool, self.case.sample)))

    def lasts(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from checks.check_case(self.case, self.target.name, facts)

    def plan(self, facts: Facts) -> Plan:
        disks = [disk for path in self.case.all_disks if (disk := facts.disk(path))]
        return Plan(
            summary=Message(
                "{says} {settings}.",
                says=KINDS[self.case.workload].says,
                settings=join_messages(list(self.case.settings.values()), ", "),
            ),
            steps=tuple(self.build_steps(facts)),
            identity={"operation": msgspec.to_builtins(self), "disks": [disk.identity for disk in disks]},
            undo=Message("Everything that is made for it is cleared away at the end."),
        )

    def build_steps(self, facts: Facts) -> Iterator[Step]:
        case, target = self.case, self.target
        yield from self.creation_steps(facts)
        prefilled = Prefill()
        yield from self.prefill_steps(prefilled)
        words = () if case.workload == "resilver" else run_command(target, facts)
        runs, shown = CaseRunner(target, tuple(words), prefilled), self.run_commands_text(words)
        if case.warmups:
            often = (
                Message(
                    "Run it {count} times and until the cache device is warm, which do not count", count=case.warmups
                )
                if case.cache
                else Message("Run it {count} times, which do not count", count=case.warmups)
            )
            yield Step("warm", often, shown, runs.run_warmups)
        for number in range(1, case.repeats + 1):
            yield Step(
                f"run-{number}",
                Message("Run {number} of {repeats}", number=number, repeats=case.repeats),
                shown,
                run_numbered(runs, number),
            )
        if case.makes_folder:
            yield Step(
                "clear",
                Message("Clear everything away"),
                shlex.join(scratch.destroy_command(target.claim)),
                lambda work: scratch.clear_case(self.token, work),
            )

    def creation_steps(self, facts: Facts) -> Iterator[Step]:
        """Steps that make the scratch pool or folder. The claim is stored first."""
        case, name = self.case, self.target.name
        if case.makes_folder:
            yield Step(
                "claim",
                Message("Note what is taken, so that it can be cleared away after a power cut"),
                f"{name}: {', '.join(case.all_disks) or case.pool}",
                self.claim_disks,
                case.all_disks,
            )
        if case.limited:
            size = memory_for(case.size)
            shown = "\n".join(f"write {text} into {path}" for path, text in arc_limit.limit_writes(size))
            yield Step(
                "memory",
                Message("Limit ZFS's memory to {size}, for the whole box", size=binary_text(size)),
                shown,
                self.limit_memory,
                (),
                Message("It is set back at the end"),
            )
        if case.partition:
            cuts = [Cut(disk, case.partition) for path in case.disks if (disk := facts.disk(path))]
            yield partition_step(cuts, [name])
        if case.where == "scratch":
            unequal = scratch.has_unequal_disks(checks.vdev_disk_sizes(case, facts))
            yield self.command_step(
                "create",
                Message("Create the scratch pool {name}", name=name),
                scratch.create_pool_command(case, self.token, unequal),
            )
        elif case.where == "dataset":
            yield self.command_step(
                "create",
                Message("Create the scratch folder {pool}/{name}", pool=case.pool, name=name),
                scratch.create_dataset_command(case, self.token, checks.dataset_quota(case)),
            )
        if case.volblocksize:
            yield self.command_step(
                "volume",
                Message("Create a volume with blocks of {size}", size=binary_text(case.volblocksize)),
                scratch.create_volume_command(case, self.token),
            )

    def prefill_steps(self, prefilled: Prefill) -> Iterator[Step]:
        """Steps that write data before the first run."""
        case, target, part = self.case, self.target, min(self.case.size, sample_data.PART)
        if case.sample:
            yield Step(
                "lay",
                Message("Read files of {sample} as a sample, without their names", sample=case.sample),
                sample_commands_text(case, sample_data.prefill_command(target, 0, part)),
                lambda work: prefill.prepare_sample(target, work, prefilled),
            )
        elif KINDS[case.workload].needs_file:
            words = workload_command.prefill_command(case, target.place)
            yield Step(
                "lay",
                Message("Write {size} to be read or changed", size=binary_text(case.size)),
                shlex.join(words),
                lambda work: prefill.write_test_data(target, work),
            )
        elif case.workload == "resilver":
            words = workload_command.fill_command(target.folder, 0, case.gentle)
            shown = f"{shlex.join(words)}\n# with the size that makes {case.fill} % of the new pool"
            yield Step(
                "lay",
                Message("Fill the pool to {share} %", share=case.fill),
                shown,
                lambda work: prefill.fill_pool(target, work),
            )

    def run_commands_text(self, words: Sequence[str]) -> str:
        """Every command of one run, one on each line."""
        case, target = self.case, self.target
        if case.workload == "resilver":
            return "\n".join(map(shlex.join, resilver_run.resilver_commands(target)))
        if case.sample and case.workload in FROM_MEMORY:
            argv = sample_data.write_command(target, 0, min(case.size, sample_data.PART))
            return "\n".join([sample_commands_text(case, argv), shlex.join(target.sync_command)])
        through = (
            loopback_mount.mount_commands(case.protocol, scratch.scratch_folder(self.token), self.token)
            if case.protocol
            else []
        )
        return "\n".join(
            map(shlex.join, [*through, words, *([target.sync_command] if case.workload in SYNCED else [])])
        )

    def command_step(self, name: str, title: str, argv: Sequence[str]) -> Step:
        def act(_work: Work) -> None:
            retry.run_with_udev_retry(argv, timeout=scratch.LONG)

        return Step(name, title, shlex.join(argv), act, self.case.all_disks, Message("It is cleared away at the end"))

    def claim_disks(self, _work: Work) -> None:
        scratch_claim.write_claim(self.target.claim)
        scratch.scratch_folder(self.token).parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def limit_memory(self, work: Work) -> None:
        work.note(
            Message(
                "ZFS's memory is limited to {size}", size=binary_text(arc_limit.limit_arc(self.token, self.case.size))
            )
        )

    def probe(self, step: str, facts: Facts) -> bool:
        # The figures of an interrupted run are lost, so an interrupted case always counts as not done.
        return False

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Its results do not count. Larder cleans up and measures the case again.")


def run_command(target: BenchmarkTarget, facts: Facts) -> list[str]:
    """The command of one run; for a raw disk it depends on the disk's size."""
    disk = facts.disk(target.case.disks[0]) if target.case.where == "disk" else None
    return workload_command.workload_command(target.case, target.folder, disk.size if disk else 0)


def sample_commands_text(case: Case, argv: Sequence[str]) -> str:
    """The command that copies the first part of a sample, and a line about the other parts."""
    return f"{shlex.join(argv)}\n# and so on for each part, until {binary_text(case.size)} are written"


def run_numbered(runs: CaseRunner, number: int) -> Callable[[Work], None]:
    return lambda work: runs.run_and_record(work, number)
