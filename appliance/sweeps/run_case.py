"""The operation that measures one case: make what it is measured on, run it so often, clear everything away.

What it finds travels in the job's log: one line a run (``table.RESULT``). After a crash nothing is guessed: the case is
cleared away (``ClearUp``) and measured anew.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from appliance import command
from appliance.disks.partitions import Cut, partition_step
from appliance.errors import Failed, Reason
from appliance.facts import Disk, Facts, Pool
from appliance.layout.choices import SLACK
from appliance.layout.geometry import GIB, MIB, PARTITION_MARGIN, usable_bytes
from appliance.operation import Operation, Plan, Step, Work
from appliance.shares import nfs
from appliance.sweeps import around, claims, estimate, honesty, loopback, scratch
from appliance.sweeps.case import Case
from appliance.sweeps.claims import Claim
from appliance.sweeps.figures import Figures, from_bonnie, from_dd, from_fio, from_iperf
from appliance.sweeps.table import RESULT, VERSIONS, Run
from appliance.sweeps.workloads import DATA, KINDS, SYNCED, commands_for, filling, laying
from appliance.words import disk_label, size_text
from appliance.zfs import fresh, status

HOURS = 6 * 3600  # the longest that one run may take
ROOM = 1.3  # a scratch pool or dataset has to hold so many times what a run writes
LEAST_FREE = 0.05  # of a pool that is in use, which stays free whatever is measured in it


class RunCase(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measure one case. ``token`` names what is made for it: twelve random hexadecimal digits."""

    token: str
    case: Case

    def __post_init__(self) -> None:
        claims.token(self.token)

    @property
    def name(self) -> str:
        return claims.name_of(self.token)

    @property
    def title(self) -> str:
        return f"Measure: {KINDS[self.case.workload].title.lower()}"

    @property
    def subject(self) -> str:
        return self.case.pool or self.case.peer or self.name

    def locks(self) -> tuple[str, ...]:
        return (self.name, *self.case.every)

    def lasts(self) -> bool:
        return True

    # --- what speaks against it -------------------------------------------------------------------------------
    def check(self, facts: Facts) -> Iterator[Reason]:
        if self.case.where == "disk":
            if facts.disk(self.case.disks[0]) is None:
                yield Reason(f"The disk {self.case.disks[0].rsplit('/', 1)[-1]} is no longer there.", "disks")
            return
        if self.case.where == "network":
            return
        if facts.zfs == "missing":
            yield Reason("The ZFS module is not loaded on this system, so nothing can be measured.")
        elif self.case.where == "dataset":
            yield from self.check_pool(facts)
        else:
            yield from self.check_disks(facts)

    def check_pool(self, facts: Facts) -> Iterator[Reason]:
        pool, root = facts.pool_of(self.case.guid), facts.dataset(self.case.pool)
        if pool is None or pool.name != self.case.pool or root is None:
            yield Reason(f"The pool {self.case.pool} is not in use here any more.", "pool")
        elif pool.state == "SUSPENDED":
            yield Reason(f"{pool.name} has stopped because its disks do not answer. Bring them back first.", "pool")
        elif root.locked or root.readonly:
            yield Reason(f"{pool.name} is locked or may only be read. Nothing can be measured in it.", "pool")
        elif root.available - self.quota < LEAST_FREE * pool.size:
            yield Reason(
                f"{pool.name} has {size_text(root.available)} left, and this needs {size_text(self.quota)} with some to spare. Measure with less data.",
                "size",
            )

    def check_disks(self, facts: Facts) -> Iterator[Reason]:
        if facts.pool(self.name):
            yield Reason("Something of this measurement is still there. Larder clears it away first.")
        found: list[Disk] = []
        for path in self.case.every:
            disk = facts.disk(path)
            if disk is None:
                yield Reason(f"The disk {path.rsplit('/', 1)[-1]} is no longer there.", "disks")
            elif disk.uses:
                yield Reason(f"{disk_label(disk)} {disk.uses[0].text}. Only disks that hold nothing are measured in this way.", "disks")  # fmt: skip
            elif disk.logical_sector > 1 << self.case.ashift:
                yield Reason(f"{disk_label(disk)} has sectors of {disk.logical_sector} bytes; ashift {self.case.ashift} is too small.", "ashifts")  # fmt: skip
            elif self.case.partition and path in self.case.disks and disk.size < self.case.partition + SLACK:
                yield Reason(f"{disk_label(disk)} has no room for a partition of {size_text(self.case.partition)}.", "partitions")  # fmt: skip
            else:
                found.append(disk)
        if len(found) < len(self.case.every):
            return
        margin = 0 if self.case.partition else PARTITION_MARGIN
        room = usable_bytes(self.case.layout, self.sizes(facts), self.case.ashift, margin=margin)
        if self.case.workload != "resilver" and room < self.case.size * ROOM:
            yield Reason(f"The pool would hold {size_text(room)}, too little for {size_text(self.case.size)} of data. Measure with less.", "size")  # fmt: skip

    def sizes(self, facts: Facts) -> list[list[int]]:
        """Bytes that each disk of each group gives."""
        return [
            [self.case.partition or disk.size for path in group if (disk := facts.disk(path))]
            for group in self.case.groups
        ]

    @property
    def quota(self) -> int:
        return int(self.case.size * ROOM) + GIB // 4

    # --- what is done -----------------------------------------------------------------------------------------
    def plan(self, facts: Facts) -> Plan:
        disks = [disk for path in self.case.every if (disk := facts.disk(path))]
        return Plan(
            summary=f"{KINDS[self.case.workload].says} {', '.join(self.case.settings.values())}.",
            steps=tuple(self.steps(facts)),
            identity={"operation": msgspec.to_builtins(self), "disks": [disk.identity for disk in disks]},
            undo="Everything that is made for it is cleared away at the end.",
        )

    def steps(self, facts: Facts) -> Iterator[Step]:
        case, kind = self.case, KINDS[self.case.workload]
        if case.makes:
            yield Step("claim", "Note what is taken, so that it can be cleared away after a power cut", f"{self.name}: {', '.join(case.every) or case.pool}", self.claim, case.every)  # fmt: skip
        if case.partition:
            cuts = [Cut(disk, case.partition) for path in case.disks if (disk := facts.disk(path))]
            yield partition_step(cuts, [self.name])
        if case.where == "scratch":
            yield self.command("create", f"Create the scratch pool {self.name}", scratch.create_pool(case, self.token, scratch.unequal(self.sizes(facts))))  # fmt: skip
        elif case.where == "dataset":
            yield self.command("create", f"Create the scratch folder {case.pool}/{self.name}", scratch.create_dataset(case, self.token, self.quota))  # fmt: skip
        if case.volblocksize:
            yield self.command("volume", f"Create a volume with blocks of {size_text(case.volblocksize)}", scratch.create_volume(case, self.token))  # fmt: skip
        if kind.laid:
            words = laying(case, self.place)
            yield Step("lay", f"Write {size_text(case.size)} to be read or changed", shlex.join(words), self.lay)
        elif case.workload == "resilver":
            yield Step("lay", f"Fill the pool to {case.fill} %", shlex.join(filling(self.folder, 0)), self.fill)
        shown = self.shown(facts)
        if case.warmups:
            yield Step("warm", f"Run it {case.warmups} times, which do not count", shown, self.warm(facts))
        for number in range(1, case.repeats + 1):
            yield Step(f"run-{number}", f"Run {number} of {case.repeats}", shown, self.measuring(facts, number))
        if case.makes:
            yield Step("clear", "Clear everything away", f"zpool destroy, zfs destroy or wipefs, of {self.name} alone", lambda work: scratch.clear(self.token, work))  # fmt: skip

    @property
    def folder(self) -> str:
        """Where a run writes and reads: what a client sees, where it goes through a protocol; a volume's device."""
        return str(loopback.mounted_at(self.token)) if self.case.protocol else self.place

    @property
    def place(self) -> str:
        """The scratch folder in the box itself, or the device of the scratch volume."""
        if self.case.volblocksize:
            return scratch.volume_device(self.case, self.token)
        return str(scratch.folder_of(self.token))

    def shown(self, facts: Facts) -> str:
        if self.case.workload == "resilver":
            return "\n".join(shlex.join(words) for words in self.replacing())
        through = loopback.commands_for(self.case.protocol, scratch.folder_of(self.token), self.token) if self.case.protocol else []  # fmt: skip
        words = [*through, self.words(facts), *([self.syncing] if self.case.workload in SYNCED else [])]
        return "\n".join(map(shlex.join, words))

    def words(self, facts: Facts) -> list[str]:
        disk = facts.disk(self.case.disks[0]) if self.case.where == "disk" else None
        return commands_for(self.case, self.folder, disk.size if disk else 0)

    def command(self, name: str, title: str, argv: Sequence[str]) -> Step:
        def act(_work: Work) -> None:
            fresh.run(argv, timeout=scratch.LONG)

        return Step(name, title, shlex.join(argv), act, self.case.every, "It is cleared away at the end")

    @property
    def made(self) -> Claim:
        return Claim(token=self.token, disks=self.case.every, pool=self.case.pool, protocol=self.case.protocol)

    def claim(self, _work: Work) -> None:
        claims.write(self.made)
        scratch.folder_of(self.token).parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def lay(self, work: Work) -> None:
        if self.case.volblocksize:
            scratch.wait_for_volume(self.case, self.token)
        words = laying(self.case, self.place)
        command.run(words, timeout=HOURS, meanwhile=self.telling(work, "Writing the data", estimate.of_run(self.case)))

    def fill(self, work: Work) -> None:
        room = os.statvfs(self.folder)
        size = room.f_bavail * room.f_frsize * self.case.fill // 100 // MIB * MIB
        words = filling(self.folder, size)
        command.run(words, timeout=HOURS, meanwhile=self.telling(work, f"Writing {size_text(size)}", size / estimate.GUESSED_RATE))  # fmt: skip

    def telling(self, work: Work, doing: str, expected: float) -> Callable[[], None]:
        """What is done every second while a program runs: progress with the speed of the disks, and stopping if asked."""
        began, last = time.monotonic(), around.moved(self.devices())

        def look() -> None:
            nonlocal last
            work.stop_if_asked()
            if self.case.makes and around.stopped(self.case.pool or self.name):
                raise Failed("The pool has stopped while it was measured, because a disk of it does not answer")
            now = around.moved(self.devices())
            done = around.between(last, now)
            last = now
            seconds = time.monotonic() - began
            speed = f": {size_text(done.read)}/s read, {size_text(done.written)}/s written" if self.devices() else ""
            work.progress(min(99, int(seconds * 100 / max(expected, 1))), f"{doing}{speed}")

        return look

    def devices(self) -> list[str]:
        """Whose counters tell what is really moved."""
        if self.case.where != "dataset":
            return list(self.case.every)
        return self.of_pool

    @property
    def of_pool(self) -> list[str]:
        return scratch.devices_of(next((one for one in status.read_pools() if one.guid == self.case.guid), None))

    # --- one run ----------------------------------------------------------------------------------------------
    def warm(self, facts: Facts) -> Callable[[Work], None]:
        def act(work: Work) -> None:
            for number in range(1, self.case.warmups + 1):
                self.run_once(work, facts, f"Warming up, {number} of {self.case.warmups}")

        return act

    def measuring(self, facts: Facts, number: int) -> Callable[[Work], None]:
        def act(work: Work) -> None:
            run = self.judged(work, facts, number)
            if run.disturbed:
                work.note(f"Run {number} was disturbed and is repeated: {' '.join(run.disturbed)}")
                run = self.judged(work, facts, number)
            if number == 1:
                work.note(VERSIONS + json.dumps(around.versions()))
            work.note(RESULT + msgspec.json.encode(run).decode())

        return act

    def judged(self, work: Work, facts: Facts, number: int) -> Run:
        """One run with what is to be said of it."""
        if self.case.makes and self.case.workload != "resilver":
            self.prepare(work)
        throttles, devices = around.throttled(), self.devices()
        pools = read_pools()
        before = around.moved(devices)
        figures = self.run_once(work, facts, f"Run {number} of {self.case.repeats}")
        if self.case.makes:
            # What was written is counted when it has arrived.
            command.run(self.syncing, timeout=scratch.LONG)
        moved = around.between(before, around.moved(devices))
        after = read_pools()
        circumstances = msgspec.structs.replace(
            moved,
            memory=around.memory(),
            busy=tuple(dict.fromkeys((*around.busy(pools, self.name), *around.busy(after, self.name)))),
            hottest=around.hottest(self.case.every),
            throttled=around.throttled() - throttles,
            lost=around.lost(after, self.name),
        )
        return Run(
            number=number,
            figures=figures,
            around=circumstances,
            invalid=tuple(honesty.reasons(self.case, figures, circumstances)),
            disturbed=tuple(honesty.disturbances(circumstances)),
            remarks=tuple(filter(None, (figures.told, *honesty.remarks(circumstances)))),
        )

    def prepare(self, work: Work) -> None:
        """As ``forget``; through a protocol, server and client are made anew, so that neither remembers anything."""
        if self.case.protocol:
            loopback.end(scratch.folder_of(self.token), self.token)
        self.forget(work)
        if self.case.protocol == "nfs" and not nfs.running():
            claims.write(msgspec.structs.replace(self.made, nfs=True))
            loopback.start_nfs()
        if self.case.protocol:
            loopback.begin(self.case.protocol, scratch.folder_of(self.token), self.token)

    def forget(self, work: Work) -> None:
        """Nothing of the last run in memory, nor, where files are made, on disk. A warm cache device stays warm."""
        if self.case.volblocksize and not KINDS[self.case.workload].laid:
            command.run(["blkdiscard", "-f", self.place], timeout=scratch.LONG)
        if not KINDS[self.case.workload].laid:
            for path in scratch.folder_of(self.token).iterdir():
                if path.is_file() and (path.name == DATA or path.name.startswith("larder.")):
                    path.unlink()
        if not self.case.warmups:
            out, back = scratch.forgetting(self.case, self.token)
            work.stop_if_asked()
            scratch.leave(out)
            if self.case.where == "scratch":
                scratch.wait_for_parts(self.case)
            work.stop_if_asked()
            fresh.run(back, timeout=scratch.LONG)
            if self.case.volblocksize:
                scratch.wait_for_volume(self.case, self.token)

    def run_once(self, work: Work, facts: Facts, doing: str) -> Figures:
        if self.case.workload == "resilver":
            return self.rebuilt(work, doing)
        expected = estimate.of_run(self.case)
        # iperf3 says what went wrong in its JSON, and ends with status 1.
        accept = (0, 1) if self.case.where == "network" else (0,)
        result = command.run(self.words(facts), timeout=HOURS, accept=accept, meanwhile=self.telling(work, doing, expected))  # fmt: skip
        if self.case.where == "network":
            return from_iperf(result.stdout)
        if self.case.workload == "bonnie":
            return from_bonnie(result.stdout)
        if self.case.workload.startswith("dd-"):
            found = from_dd(result.stderr, reading=self.case.workload == "dd-read")
        else:
            found = from_fio(result.stdout)
        return found.with_more(self.synced(work, doing)) if self.case.workload in SYNCED else found

    @property
    def syncing(self) -> list[str]:
        """The command that ends when everything written is on the pool's disks."""
        return ["zpool", "sync", "--", self.case.pool or self.name]

    def synced(self, work: Work, doing: str) -> float:
        """Wait until what was written has arrived; the seconds that it took."""
        began = time.monotonic()
        command.run(self.syncing, timeout=HOURS, meanwhile=self.telling(work, doing, estimate.of_run(self.case)))
        return time.monotonic() - began

    # --- rebuilding -------------------------------------------------------------------------------------------
    def replacing(self) -> list[list[str]]:
        """Take the last disk away, and give it back once it is empty."""
        device = scratch.device(self.case, self.case.disks[-1])
        return [["zpool", "offline", "--", self.name, device], ["zpool", "replace", "-f", "--", self.name, device]]

    def rebuilt(self, work: Work, doing: str) -> Figures:
        offline, replace = self.replacing()
        command.run(offline, timeout=scratch.LONG)
        scratch.empty(f"{self.case.disks[-1]}-part1")
        began, device = time.monotonic(), self.case.disks[-1:]
        then = around.moved(device)
        fresh.run(replace, timeout=scratch.LONG)
        # ``replace`` as well: the place of the old device goes a moment after the last block is written.
        wait = ["zpool", "wait", "-t", "resilver,replace", "--", self.name]
        command.run(wait, timeout=HOURS, meanwhile=self.telling(work, doing, 60))
        seconds = time.monotonic() - began
        written = around.between(then, around.moved(device)).written
        return Figures(seconds=seconds, rate=written / max(seconds, 0.001), written=written, tool="zpool wait")

    # --- after a crash ----------------------------------------------------------------------------------------
    def happened(self, step: str, facts: Facts) -> bool:
        # What a run measured is gone with the process that measured it, so an interrupted case has not happened.
        return False

    def way_on(self, step: str, facts: Facts) -> str:
        return "Nothing of it counts. Larder clears away what is left of it and measures it anew."


class ClearUp(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Clear away what a case has left. It goes by what was noted before it was made, whoever asks."""

    token: str
    disks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        claims.token(self.token)

    @property
    def title(self) -> str:
        return "Clear away what a measurement left"

    @property
    def subject(self) -> str:
        return claims.name_of(self.token)

    def locks(self) -> tuple[str, ...]:
        return (self.subject, *self.disks)

    def check(self, facts: Facts) -> Iterator[Reason]:
        return iter(())

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary="The scratch pool or folder goes, and its disks hold nothing again. Nothing else is touched.",
            steps=(
                Step("clear", "Clear everything away", f"zpool destroy, zfs destroy or wipefs, of {self.subject} alone", lambda work: scratch.clear(self.token, work)),
            ),
            identity={"operation": msgspec.to_builtins(self)},
        )  # fmt: skip

    def happened(self, step: str, facts: Facts) -> bool:
        traces = any(use.pool == self.subject for disk in facts.disks for use in disk.uses)
        return facts.pool(self.subject) is None and not traces

    def way_on(self, step: str, facts: Facts) -> str:
        return "Something of it may still be there. Larder tries again."


def read_pools() -> tuple[Pool, ...]:
    """None where ZFS is not there: a disk can be read without it."""
    return status.read_pools() if status.loaded() else ()
