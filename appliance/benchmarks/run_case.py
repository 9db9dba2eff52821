"""The operation that measures one case: make what it is measured on, run it so often, clear everything away.

What it finds travels in the job's log: one line a run (``table.RESULT``). After a crash nothing is guessed: the case is
cleared away (``clear_up.py``) and measured anew.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

import msgspec

from appliance.benchmarks import (
    arc_limit,
    checks,
    claims,
    loopback_mount,
    prefill,
    resilver_run,
    sample_data,
    scratch,
    workloads,
)
from appliance.benchmarks.case import FROM_MEMORY, Case, memory_for
from appliance.benchmarks.prefill import Laid
from appliance.benchmarks.runner import Measuring
from appliance.benchmarks.target import Ground
from appliance.benchmarks.workloads import KINDS, SYNCED
from appliance.disks.partitions import Cut, partition_step
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.formatting import size_text
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.pools.vdevs import retry


class RunBenchmarkCase(Operation, tag="run-benchmark-case"):
    """Measure one case. ``token`` names what is made for it: twelve random hexadecimal digits."""

    needs_proof = never

    token: str
    case: Case

    def __post_init__(self) -> None:
        claims.token(self.token)

    @property
    def ground(self) -> Ground:
        return Ground(self.token, self.case)

    @property
    def title(self) -> str:
        return f"Measure: {KINDS[self.case.workload].title.lower()}"

    @property
    def subject(self) -> str:
        return self.case.pool or self.case.peer or self.ground.name

    def locks(self) -> tuple[str, ...]:
        return (self.ground.name, *self.case.every)

    def disks_taken(self) -> tuple[str, ...]:
        return self.case.every if self.case.where == "scratch" else ()

    def files_used(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.case.pool, self.case.sample)))

    def lasts(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from checks.reasons(self.case, self.ground.name, facts)

    def plan(self, facts: Facts) -> Plan:
        disks = [disk for path in self.case.every if (disk := facts.disk(path))]
        return Plan(
            summary=f"{KINDS[self.case.workload].says} {', '.join(self.case.settings.values())}.",
            steps=tuple(self.steps(facts)),
            identity={"operation": msgspec.to_builtins(self), "disks": [disk.identity for disk in disks]},
            undo="Everything that is made for it is cleared away at the end.",
        )

    def steps(self, facts: Facts) -> Iterator[Step]:
        case, ground = self.case, self.ground
        yield from self.making(facts)
        laid = Laid()
        yield from self.preparing(laid)
        words = () if case.workload == "resilver" else commands_of(ground, facts)
        runs, shown = Measuring(ground, tuple(words), laid), self.shown(words)
        if case.warmups:
            often = (
                f"{case.warmups} times and until the cache device is warm" if case.cache else f"{case.warmups} times"
            )
            yield Step("warm", f"Run it {often}, which do not count", shown, runs.warm)
        for number in range(1, case.repeats + 1):
            yield Step(f"run-{number}", f"Run {number} of {case.repeats}", shown, numbered(runs, number))
        if case.makes:
            yield Step("clear", "Clear everything away", f"zpool destroy, zfs destroy or wipefs, of {ground.name} alone", lambda work: scratch.clear(self.token, work))  # fmt: skip

    def making(self, facts: Facts) -> Iterator[Step]:
        """The scratch pool, or the dataset in a pool that is there, noted before it is made."""
        case, name = self.case, self.ground.name
        if case.makes:
            yield Step("claim", "Note what is taken, so that it can be cleared away after a power cut", f"{name}: {', '.join(case.every) or case.pool}", self.claim, case.every)  # fmt: skip
        if case.limited:
            size = memory_for(case.size)
            shown = f"echo {arc_limit.FLOOR} > {arc_limit.PARAMETERS}/zfs_arc_min\necho {size} > {arc_limit.PARAMETERS}/zfs_arc_max"
            yield Step("memory", f"Hold ZFS's memory at {size_text(size)}, for the whole box", shown, self.limit, (), "It is as it was at the end")  # fmt: skip
        if case.partition:
            cuts = [Cut(disk, case.partition) for path in case.disks if (disk := facts.disk(path))]
            yield partition_step(cuts, [name])
        if case.where == "scratch":
            unequal = scratch.unequal(checks.sizes(case, facts))
            yield self.command("create", f"Create the scratch pool {name}", scratch.create_pool(case, self.token, unequal))  # fmt: skip
        elif case.where == "dataset":
            yield self.command("create", f"Create the scratch folder {case.pool}/{name}", scratch.create_dataset(case, self.token, checks.quota(case)))  # fmt: skip
        if case.volblocksize:
            yield self.command("volume", f"Create a volume with blocks of {size_text(case.volblocksize)}", scratch.create_volume(case, self.token))  # fmt: skip

    def preparing(self, laid: Laid) -> Iterator[Step]:
        """What lies on it before the first run."""
        case, ground = self.case, self.ground
        if case.sample:
            yield Step("lay", f"Read files of {case.sample} as a sample, without their names", in_parts(ground), lambda work: prefill.sample(ground, work, laid))  # fmt: skip
        elif KINDS[case.workload].laid:
            words = workloads.laying(case, ground.place)
            yield Step("lay", f"Write {size_text(case.size)} to be read or changed", shlex.join(words), lambda work: prefill.lay(ground, work))  # fmt: skip
        elif case.workload == "resilver":
            words = workloads.filling(ground.folder, 0, case.gentle)
            yield Step("lay", f"Fill the pool to {case.fill} %", shlex.join(words), lambda work: prefill.fill(ground, work))  # fmt: skip

    def shown(self, words: Sequence[str]) -> str:
        """Every command of one run."""
        case, ground = self.case, self.ground
        if case.workload == "resilver":
            return "\n".join(map(shlex.join, resilver_run.commands_for(ground)))
        if case.sample and case.workload in FROM_MEMORY:
            return "\n".join([in_parts(ground), shlex.join(ground.syncing)])
        through = loopback_mount.commands_for(case.protocol, scratch.folder_of(self.token), self.token) if case.protocol else []  # fmt: skip
        return "\n".join(map(shlex.join, [*through, words, *([ground.syncing] if case.workload in SYNCED else [])]))

    def command(self, name: str, title: str, argv: Sequence[str]) -> Step:
        def act(_work: Work) -> None:
            retry.run_with_udev_retry(argv, timeout=scratch.LONG)

        return Step(name, title, shlex.join(argv), act, self.case.every, "It is cleared away at the end")

    def claim(self, _work: Work) -> None:
        claims.write(self.ground.made)
        scratch.folder_of(self.token).parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def limit(self, work: Work) -> None:
        work.note(f"ZFS's memory is held at {size_text(arc_limit.limit(self.token, self.case.size))}")

    def probe(self, step: str, facts: Facts) -> bool:
        # What a run measured is gone with the process that measured it, so an interrupted case has not happened.
        return False

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "Nothing of it counts. Larder clears away what is left of it and measures it anew."


def commands_of(ground: Ground, facts: Facts) -> list[str]:
    """The command of one run; a disk that is read as it is tells its size."""
    disk = facts.disk(ground.case.disks[0]) if ground.case.where == "disk" else None
    return workloads.commands_for(ground.case, ground.folder, disk.size if disk else 0)


def in_parts(ground: Ground) -> str:
    """The command that brings a sample to the pool, as a person sees it."""
    size = min(ground.case.size, sample_data.PART)
    words = workloads.pouring(scratch.part_of(ground.token), ground.place, 0, size, ground.case.gentle)
    return f"{shlex.join(words)} conv=notrunc\n# and so on, a part after the other, until it is {size_text(ground.case.size)}"


def numbered(runs: Measuring, number: int) -> Callable[[Work], None]:
    return lambda work: runs.measured(work, number)
