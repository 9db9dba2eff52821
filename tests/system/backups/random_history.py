"""A random history of a source and its backup on two real pools, for the appliance's own Python:
``python -c TEXT SEED STEPS``.

Writes, snapshots, prunings, renamings, roll-backs and runs that are stopped at a random byte or command
follow each other. After each step the program looks at both sides with ``zfs`` alone and ends with a
traceback where a promise does not hold. The last line that it prints is JSON: what was done how often, and
how many snapshots were compared file by file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from appliance import command, snapshot_names
from appliance.backups import retention, run_mark, stream, tasks
from appliance.backups.run_backup import RunBackup
from appliance.backups.set_aside import SetCopyAside
from appliance.backups.set_backup import SetBackup
from appliance.backups.tasks import BackupTask
from appliance.errors import Cancelled, Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset, Snapshot
from appliance.facts.kept_copies import Keep
from appliance.operation import Operation, checked_plan
from appliance.zfs import status

HERE = Path("/var/tmp/random-history")
DISKS = Path("/dev/shm/random-history")  # in memory: nothing here is about a disk
POOLS = ("srcpool", "dstpool")
PLACE = "backups/photos"
COPY = f"{POOLS[1]}/{PLACE}"
KEY = "0badcafe"
KEEP = Keep(hourly=2, daily=2, weekly=1, monthly=1)  # little, so that retention is at work all the time
SLOTS = {"hourly": "%Y-%m-%d %H", "daily": "%Y-%m-%d", "weekly": "%G-%V", "monthly": "%Y-%m"}
PHRASE = "the phrase of the attic"
RUN = "larder-backup-"
MOST_FILES = 12
SECONDS_TO_SETTLE = 120


def run(*argv: str, given: str | None = None) -> str:
    ended = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
    assert not ended.returncode, f"{argv} ended with {ended.returncode}: {ended.stderr}"
    return ended.stdout


def lines(*argv: str) -> list[list[str]]:
    return [line.split("\t") for line in run(*argv).splitlines()]


def facts() -> Facts:
    return Facts(pools=status.read_pools(), datasets=status.read_datasets())


@dataclass
class Work:
    """What a running step may use: it notes, and stops after a number of calls where it should."""

    left: int = -1
    notes: list[str] = field(default_factory=list)

    def progress(self, percent: int, phrase: str) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)

    def secret(self) -> str:
        raise Refused

    def stop_if_asked(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Cancelled


def perform(operation: Operation, work: Work) -> None:
    """Do what the agent does with an operation, without its journal."""
    known = operation.load_extra_facts(facts())
    for step in checked_plan(operation, known).steps:
        step.run(work)


def kill_after(count: int) -> Callable[[int], None]:
    """A counter that ends this process as ``kill -9`` does."""
    left = count

    def down(by: int) -> None:
        nonlocal left
        left -= by
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return down


def moment_of(short: str) -> datetime:
    """When a copy was made by its name, whose clock jumps; ZFS dates all of a history within minutes."""
    return datetime.strptime(short.removeprefix(RUN), snapshot_names.FORMAT).replace(tzinfo=UTC)


def dated_by_name(plain: Callable[..., list[Snapshot]]) -> Callable[..., list[Snapshot]]:
    """The product's retention, at work on moments by name."""

    def expired(copies: Sequence[Snapshot], keep: Keep, _zone: tzinfo) -> list[Snapshot]:
        own = [one for one in copies if one.short.startswith(RUN)]
        return plain([replace(one, created=moment_of(one.short)) for one in own], keep, UTC)

    return expired


def retained(found: Sequence[tuple[int, str]]) -> set[int]:
    """The guids that KEEP keeps of a copy's snapshots, the oldest first: the newest of each
    hour, day, week and month."""
    stay = {guid for guid, _short in found[-1:]}
    for grain, form in SLOTS.items():
        newest: dict[str, int] = {}
        for guid, short in reversed(found):
            newest.setdefault(moment_of(short).strftime(form), guid)
        stay.update(list(newest.values())[: KEEP.count(grain)])
    return stay


def expected_losses(had: Sequence[tuple[int, str]], now: Sequence[tuple[int, str]], short: str) -> set[tuple[int, str]]:
    """What retention takes of a copy in a run named ``short``: nothing before the snapshot of that run has arrived."""
    if not now or now[-1] in had or now[-1][1] != short:
        return set()
    stay = retained([*had, *(one for one in now if one not in had)])
    return {one for one in had if one[0] not in stay}


@contextlib.contextmanager
def look_into(snapshot: str) -> Iterator[Path]:
    place = HERE / "look"
    place.mkdir(exist_ok=True)
    run("mount", "-t", "zfs", "-o", "ro", snapshot, str(place))
    try:
        yield place
    finally:
        run("umount", str(place))


def digest(snapshot: str) -> str:
    """One sum over names, kinds, modes, owners, times to the nanosecond, links and contents."""
    total = hashlib.sha256()
    with look_into(snapshot) as place:
        for folder, names, files in os.walk(place):
            names.sort()
            for name in sorted([*names, *files]):
                path = Path(folder, name)
                of = path.lstat()
                total.update(
                    repr((str(path.relative_to(place)), of.st_mode, of.st_uid, of.st_gid, of.st_mtime_ns)).encode()
                )
                if path.is_symlink():
                    total.update(str(path.readlink()).encode())
                elif path.is_file():
                    total.update(path.read_bytes())
    return total.hexdigest()


@dataclass
class Side:
    """The snapshots of a pool as ``zfs list`` says, oldest first."""

    pool: str

    def snapshots(self) -> dict[str, list[tuple[int, str]]]:
        """Guid and short name of each snapshot, by its dataset."""
        found: dict[str, list[tuple[int, str]]] = {}
        argv = ("zfs", "list", "-H", "-p", "-r", "-t", "snapshot", "-o", "guid,name", "-s", "createtxg", self.pool)
        for guid, name in lines(*argv):
            dataset, _at, short = name.partition("@")
            found.setdefault(dataset, []).append((int(guid), short))
        return found


class History:
    """The two pools, and what was ever seen of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.ever: dict[int, int] = {}  # of each snapshot of the source: the guid of its dataset
        self.order: dict[int, int] = {}  # and its number in the order in which they were taken
        self.sums: dict[int, str] = {}
        self.compared: set[int] = set()
        self.moment = int(time.time())
        self.number = 0
        self.source, self.copies = Side(POOLS[0]), Side(POOLS[1])

    # --- the pools ------------------------------------------------------------------------------------------------
    def make(self) -> None:
        clear()
        HERE.mkdir(parents=True)
        DISKS.mkdir()
        for pool in POOLS:
            run("truncate", "-s", "256M", str(DISKS / pool))
            run("zpool", "create", "-O", "mountpoint=none", "-m", "none", pool, str(DISKS / pool))
        run("zfs", "create", "-o", f"mountpoint={HERE}/photos", f"{POOLS[0]}/photos")
        self.make_child(f"{POOLS[0]}/photos/trip", encrypted=False)
        self.make_child(f"{POOLS[0]}/photos/secret", encrypted=True)
        there = next(one for one in status.read_pools() if one.name == POOLS[1])
        task = BackupTask(key=KEY, pool=there.guid, path=PLACE, keep=KEEP)
        perform(SetBackup(dataset=f"{POOLS[0]}/photos", tasks=(task,)), Work())

    def make_child(self, name: str, *, encrypted: bool) -> None:
        options = ("-o", "encryption=on", "-o", "keyformat=passphrase", "-o", "keylocation=prompt") if encrypted else ()
        run("zfs", "create", *options, name, given=f"{PHRASE}\n{PHRASE}\n")

    def root(self) -> str:
        return next(one.name for one in status.read_datasets() if tasks.tasks_of(one))

    def tree(self) -> list[Dataset]:
        return [one for one in status.read_datasets() if f"{one.name}/".startswith(f"{self.root()}/")]

    def note_source(self) -> None:
        """Remember every snapshot of the source, in the order in which they were taken."""
        owners = {one.name: one.guid for one in self.tree()}
        for dataset, found in self.source.snapshots().items():
            for guid, _short in found:
                if guid not in self.ever and dataset in owners:
                    self.ever[guid] = owners[dataset]
                    self.order[guid] = len(self.order)

    # --- what people do -------------------------------------------------------------------------------------------
    def write(self) -> None:
        place = Path(self.random.choice([one.mountpoint for one in self.tree()]))
        files = [path for path in sorted(place.iterdir()) if path.is_file()]
        if len(files) > MOST_FILES or (files and self.random.random() < 0.3):
            self.random.choice(files).unlink()
            return
        path = place / f"file {self.random.randrange(20)}"
        path.write_bytes(self.random.randbytes(self.random.randrange(1, 700_000)))
        path.chmod(self.random.choice((0o600, 0o640, 0o755)))

    def snapshot(self) -> None:
        self.number += 1
        run("zfs", "snapshot", "-r", f"{self.root()}@mine-{self.number}")

    def prune(self) -> None:
        found = [(dataset, short) for dataset, ours in self.source.snapshots().items() for _guid, short in ours]
        for dataset, short in self.random.sample(found, min(len(found), self.random.randrange(1, 6))):
            run("zfs", "destroy", f"{dataset}@{short}")

    def rename(self) -> None:
        self.number += 1
        child = self.random.choice(self.tree())
        if child.name == self.root():
            run("zfs", "rename", child.name, f"{POOLS[0]}/photos{self.number}")
        else:
            run("zfs", "rename", child.name, f"{self.root()}/folder {self.number}")

    def make_again(self) -> None:
        """Destroy a folder and make another of the same name."""
        child = self.random.choice([one for one in self.tree() if one.name != self.root()])
        run("zfs", "destroy", "-r", child.name)
        self.make_child(child.name, encrypted=child.encryption != "off")

    def roll_back(self) -> None:
        found = [(dataset, short) for dataset, ours in self.source.snapshots().items() for _guid, short in ours]
        if found:
            dataset, short = self.random.choice(found)
            run("zfs", "rollback", "-r", f"{dataset}@{short}")

    def set_clock(self) -> None:
        """Runs name their snapshots by a clock that jumps, back too."""
        self.moment += self.random.choice((-366 * 86400, -3600, 3600, 86400, 40 * 86400))

    # --- what the box does ----------------------------------------------------------------------------------------
    def replicate(self, *, stop: str = "") -> None:
        self.moment += self.random.randrange(1, 90)
        short = datetime.fromtimestamp(self.moment, UTC).strftime(snapshot_names.FORMAT)
        began = int(time.time())
        before, limit = self.copies.snapshots(), self.random.randrange(1, {"byte": 1_500_000}.get(stop, 60))
        child = os.fork()
        if not child:
            os._exit(self.in_child(short, stop, limit))
        _pid, ended = os.waitpid(child, 0)
        self.wait_for_quiet()
        self.note_source()
        status_of = os.waitstatus_to_exitcode(ended)
        assert status_of in {0, 3, 4, 5, -signal.SIGKILL}, f"the run ended with {status_of}"
        self.done[f"{stop or 'run'} {status_of}"] += 1
        self.check(before, f"{RUN}{short}")
        if status_of == 0:
            self.check_complete(before, short, began)
        if status_of == 4 and self.random.random() < 0.7:
            self.set_aside()

    def stopped_at_byte(self) -> None:
        self.replicate(stop="byte")

    def stopped_at_command(self) -> None:
        self.replicate(stop="command")

    def stopped_by_person(self) -> None:
        self.replicate(stop="person")

    def in_child(self, moment: str, stop: str, limit: int) -> int:
        """Run the backup in a process that may be killed. 0 done, 3 refused, 4 folders were not copied, 5 cancelled."""
        work = Work()
        stream.SECONDS_BETWEEN_LOOKS = 0.05
        retention.expired_copies = dated_by_name(retention.expired_copies)
        if stop == "byte":
            stream.PART, down, real = 4096, kill_after(limit), os.splice

            def splice(*args: int, **options: int) -> int:
                moved = real(*args, **options)
                down(moved)
                return moved

            os.splice = splice  # type: ignore[assignment]
        elif stop == "command":
            down, plain = kill_after(limit), command.run

            def counted(*args: Any, **options: Any) -> Any:
                down(1)
                return plain(*args, **options)

            command.run = counted
        elif stop == "person":
            work.left = limit
        try:
            known = facts()
            dataset = next(one for one in known.datasets if tasks.tasks_of(one))
            (task,) = tasks.tasks_of(dataset)
            pool = task.find_pool(known)
            assert pool
            perform(RunBackup.of(dataset, task, pool, moment), work)
        except Refused as refusal:
            print("refused:", refusal, flush=True)
            return 3
        except Failed as failed:
            print("failed:", failed, flush=True)
            return 4
        except Cancelled:
            return 5
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
            return 9
        return 0

    def wait_for_quiet(self) -> None:
        """After a kill the receiver writes what it has; nothing of a run may be left."""
        until = time.monotonic() + SECONDS_TO_SETTLE
        while subprocess.run(["pgrep", "-f", "^zfs (send|receive)"], capture_output=True, check=False).returncode == 0:
            assert time.monotonic() < until, "zfs send or receive still runs"
            time.sleep(0.1)

    def set_aside(self) -> None:
        known = facts()
        ours = [one for one in known.datasets if (mark := parse_copy_mark(one.copy_of)) and mark.guid]
        copy = self.random.choice(ours)
        perform(SetCopyAside.of(copy, known, date(2026, 1, 1)), Work())
        self.done["set aside"] += 1

    # --- what has to hold -----------------------------------------------------------------------------------------
    def check(self, before: dict[str, list[tuple[int, str]]], short: str) -> None:
        """What holds after each run, however it ended. ``short``: the name of its snapshots."""
        after = self.copies.snapshots()
        known = facts()
        for dataset, had in before.items():
            assert known.dataset(dataset), f"{dataset} is gone"
            now = after.get(dataset, [])
            wrong = set(had) - set(now) - expected_losses(had, now, short)
            assert not wrong, f"{dataset} lost {wrong}, which its retention keeps"
        for dataset, found in after.items():
            copy = known.dataset(dataset)
            mark = parse_copy_mark(copy.copy_of) if copy else None
            if not mark or not mark.guid:
                continue
            assert {self.ever.get(guid) for guid, _short in found} == {mark.guid}, f"{dataset} has foreign snapshots"
            order = [self.order[guid] for guid, _short in found]
            assert order == sorted(order), f"{dataset} went backwards: {order}"
            had = before.get(dataset, [])
            if had and had[-1][0] in self.order:
                assert order[-1] >= self.order[had[-1][0]], f"the newest copy of {dataset} went backwards"
            self.compare(dataset, found, mark.raw)
        held = run("sh", "-c", "zfs list -H -o name -t snapshot | xargs -r -d '\\n' zfs holds -H")
        assert not held.strip(), f"holds are left: {held}"

    def check_complete(self, before: dict[str, list[tuple[int, str]]], moment: str, began: int) -> None:
        """After a run that is done each copy ends with what its folder is now. Nothing is sent of a folder
        with nothing new: the run takes its snapshot back, and the mark on the copies says up to when they
        are complete all the same."""
        after, here, known = self.copies.snapshots(), self.source.snapshots(), facts()
        # What is elsewhere was set aside: it keeps what it has, what is half received too.
        marks = {one.name: parse_copy_mark(one.copy_of) for one in known.below(COPY)}
        copies = {mark.guid: name for name, mark in marks.items() if mark and mark.guid}
        tree, short = self.tree(), f"{RUN}{moment}"
        copies_of = {one.guid for one in tree}
        assert copies_of <= copies.keys(), "a run that is done left a folder without a copy"
        mark = run_mark.run_mark_of(known.dataset(COPY))
        assert mark, "a run that is done left no mark"
        assert (mark.run, mark.left) == (moment, ()), f"a run that is done is marked as {mark}"
        assert mark.at >= began - 1, f"copies count as complete at {mark.at}, before the run began at {began}"
        for one in tree:
            copy = copies[one.guid]
            newest = after[copy][-1]
            taken = [found for found in here.get(one.name, []) if found[1] == short]
            sent = newest[1] == short
            assert taken == ([newest] if sent else []), f"{copy} ends with {newest}, the run took {taken}"
            assert sent or one.encryption == "off", f"{copy} was left out, and a new passphrase with it"
            assert newest[0] in self.points(one.name), f"{one.name} no longer knows what {copy} ends with"
            assert self.digest_of_copy(f"{copy}@{newest[1]}", one.encryption != "off") == self.digest_now(one.name), (
                f"{copy}@{newest[1]} is not what {one.name} is, sent: {sent}"
            )
            had = before.get(copy, [])
            stays = expected_losses(had, after[copy], short) & set(after[copy])
            assert not stays, f"{copy} still has {stays}, which its retention does not keep"
            self.done["sent" if sent else "left out"] += 1
        ended = {name for name, of in marks.items() if of and of.guid not in copies_of}
        rests = {
            name
            for name, token in lines("zfs", "get", "-H", "-r", "-o", "name,value", "receive_resume_token", COPY)
            if token != "-"
        }
        assert rests <= ended, f"a run that is done left something half received at {rests - ended}"

    def points(self, dataset: str) -> set[int]:
        """The guids of the snapshots and bookmarks of a dataset."""
        return {
            int(guid)
            for (guid,) in lines("zfs", "list", "-H", "-p", "-d", "1", "-t", "snapshot,bookmark", "-o", "guid", dataset)
        }

    def digest_now(self, dataset: str) -> str:
        """The sum over a folder of the source as it is, without what is mounted in it."""
        run("zfs", "snapshot", f"{dataset}@now")
        try:
            return digest(f"{dataset}@now")
        finally:
            run("zfs", "destroy", f"{dataset}@now")

    def digest_of_copy(self, snapshot: str, raw: bool) -> str:
        dataset = snapshot.partition("@")[0]
        if not raw:
            return digest(snapshot)
        run("zfs", "load-key", dataset, given=f"{PHRASE}\n")
        try:
            return digest(snapshot)
        finally:
            run("zfs", "unload-key", dataset)

    def compare(self, dataset: str, found: list[tuple[int, str]], raw: bool) -> None:
        """Compare copies that arrived lately with the source's snapshot of the same guid, while that exists."""
        here = {guid: f"{name}@{short}" for name, ours in self.source.snapshots().items() for guid, short in ours}
        for guid, short in found:
            if guid in self.compared or guid not in here:
                continue
            copied = self.digest_of_copy(f"{dataset}@{short}", raw)
            assert copied == digest(here[guid]), f"{dataset}@{short} differs from its source"
            self.compared.add(guid)

    # --- the history ----------------------------------------------------------------------------------------------
    def step(self) -> None:
        acts: list[tuple[int, Callable[[], None]]] = [
            (9, self.write),
            (3, self.snapshot),
            (2, self.prune),
            (1, self.rename),
            (1, self.make_again),
            (1, self.roll_back),
            (1, self.set_clock),
            (5, self.replicate),
            (2, self.stopped_at_byte),
            (2, self.stopped_at_command),
            (1, self.stopped_by_person),
        ]
        (act,) = self.random.choices([act for _weight, act in acts], [weight for weight, _act in acts])
        name = act.__name__
        began = time.monotonic()
        act()
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
        self.note_source()
        if act in (self.write, self.snapshot, self.prune, self.rename, self.make_again, self.roll_back, self.set_clock):
            self.done[name] += 1


def clear() -> None:
    for pool in POOLS:
        subprocess.run(["zpool", "destroy", "-f", pool], capture_output=True, check=False)
    for place in (HERE, DISKS):
        shutil.rmtree(place, ignore_errors=True)


def main(seed: int, steps: int) -> None:
    history = History(seed)
    history.make()
    try:
        for _step in range(steps):
            history.step()
        # However the history went, what can be copied still is, once everything that does not fit is aside.
        for _again in range(6):
            history.write()
            before = history.done["run 0"]
            history.replicate()
            if history.done["run 0"] > before:
                break
            history.set_aside()
        assert history.done["run 0"] > before, "no run succeeds any more"
    finally:
        clear()
    print(json.dumps({"done": dict(history.done), "compared": len(history.compared)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
