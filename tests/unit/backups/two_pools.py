"""Two pools as far as a backup between them goes: snapshots, bookmarks, properties and streams by the rules of ZFS.

Each call of ZFS is a step that the run can be killed before. At every step the promises of a run are looked
at: what a copy ends with is bookmarked at the source, and neither side has let go of anything before the
snapshot of the run has arrived.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.backups import copies, tasks, transfer
from appliance.backups.match import Token
from appliance.backups.run_backup import RunBackup
from appliance.backups.stream import NotReceived
from appliance.backups.tasks import BackupTask
from appliance.command import CommandFailed, Result
from appliance.errors import Failed
from appliance.facts import user_properties
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset, Property, Snapshot
from appliance.facts.kept_copies import Keep
from appliance.operation import Step, checked_plan
from appliance.zfs import libzfs, list_snapshots
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import Working

SAFE = 2000
KEEP = Keep(hourly=1, daily=1, weekly=0, monthly=0)
TASK = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", keep=KEEP)
TOP = replace(dataset("tank/photos", guid=5), backup=tasks.encode_tasks((TASK,)), backup_source="local")
SECRET = dataset("tank/photos/secret", guid=6, encryption="aes-256-gcm", encryption_root="tank/photos/secret")
TRIP = dataset("tank/photos/trip 2019", guid=7)
TREE = (TOP, SECRET, TRIP)
HOME = "safe/backups"
START = datetime(2026, 11, 20, 2, tzinfo=UTC)


class Killed(BaseException):
    """The process of the run has ended, as by ``kill -9``: nothing in the run catches it."""


def target_of(name: str) -> str:
    return name.replace("tank/", f"{HOME}/", 1)


class TwoPools:
    """``calls``: what was asked of ZFS so far. ``arrived``: each stream that came to its end:
    copy, guid, name of its base."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.live = {one.name: 1 for one in TREE}  # what is in each folder, as a number
        self.content: dict[int, int] = {}  # the same of each snapshot, by its guid
        self.snapshots: list[Snapshot] = []  # of both pools, in order
        self.marks: dict[str, Snapshot] = {}  # bookmarks, with what they remember
        self.values: dict[str, dict[str, str]] = {}  # properties of what lies in the pool of the copies
        self.rests: dict[str, Token] = {}  # what is half received, by its copy
        self.calls: list[str] = []
        self.arrived: list[tuple[str, int, str]] = []
        self.discarded: list[str] = []
        self.kill_at = -1
        self.loses_streams = False  # the receiver says that all is well, and the copy does not show it
        self.number, self.short = 0, ""
        patches: dict[str, Callable[..., Any]] = {
            "take_most_snapshots": self.take,
            "create_bookmarks": self.bookmark,
            "destroy_bookmarks": self.destroy_bookmarks,
            "destroy_bookmark": lambda name: self.destroy_bookmarks([name]),
            "destroy_snapshots": self.destroy,
        }
        for name, stand_in in patches.items():
            monkeypatch.setattr(libzfs, name, stand_in)
        monkeypatch.setattr(list_snapshots, "list_snapshots", self.list_snapshots)
        monkeypatch.setattr(list_snapshots, "list_in_batches", self.list_bookmarks)
        monkeypatch.setattr(command, "run", self.run)
        monkeypatch.setattr(transfer, "send_stream", self.send)

    # --- what tests do ------------------------------------------------------------------------------------------------
    def write(self, *names: str) -> None:
        for name in names:
            self.live[name] += 1

    def facts(self) -> Facts:
        there = [
            dataset(
                name,
                guid=5000 + at,
                copy_of=values.get(user_properties.COPY_OF, ""),
                properties={user_properties.COPIED: Property(values[user_properties.COPIED], "local")}
                if user_properties.COPIED in values
                else {},
            )
            for at, (name, values) in enumerate(sorted(self.values.items()))
        ]
        pools = (Pool("tank", 1000, "ONLINE"), Pool("safe", SAFE, "ONLINE"))
        return replace(box(), pools=pools, datasets=(*TREE, *there))

    def operation(self) -> RunBackup:
        """The next run, an hour after the one before."""
        self.number += 1
        at = START + timedelta(hours=self.number)
        return RunBackup(dataset=TOP.name, key=TASK.key, target=target_of(TOP.name), moment=f"{at:%Y.%m.%d-%H.%M.%S}")

    def steps(self, operation: RunBackup) -> tuple[Step, ...]:
        self.short = operation.short
        return checked_plan(operation, operation.load_extra_facts(self.facts())).steps

    def back_up(self, *, kill_at: int = -1) -> Working:
        """A run from its beginning; ``kill_at``: the number of the call before which it is killed."""
        work = Working()
        steps = self.steps(self.operation())
        self.calls.clear()
        self.kill_at = kill_at
        try:
            for step in steps:
                step.run(work)
        finally:
            self.kill_at = -1
        return work

    def of(self, name: str) -> list[Snapshot]:
        return [one for one in self.snapshots if one.dataset == name]

    def newest(self, name: str) -> Snapshot | None:
        return next(reversed(self.of(name)), None)

    def source_of(self, copy: str) -> Dataset:
        return next(one for one in TREE if target_of(one.name) == copy)

    def assert_complete(self) -> None:
        """Every copy ends with what its folder has now, and nothing is half received."""
        for one in TREE:
            newest = self.newest(target_of(one.name))
            assert newest and self.content[newest.guid] == self.live[one.name], (
                f"the copy of {one.name} is not complete"
            )
        assert self.rests == {}

    # --- a call -------------------------------------------------------------------------------------------------------
    def call(self, what: str) -> None:
        if len(self.calls) == self.kill_at:
            raise Killed(what)
        self.calls.append(what)
        for one in TREE:
            if (newest := self.newest(target_of(one.name))) and newest.guid not in self.guids_marked(one.name):
                raise AssertionError(f"{what}: {one.name} has no bookmark of what its copy ends with")

    def guids_marked(self, name: str) -> set[int]:
        return {of.guid for mark, of in self.marks.items() if mark.startswith(f"{name}#")}

    def has_arrived(self, source: str) -> bool:
        newest = self.newest(target_of(source))
        return newest is not None and newest.short == self.short

    def may_go(self, name: str, short: str) -> None:
        """What a run has taken itself it may take back; everything else only after the run's snapshot has arrived."""
        source = name if name in self.live else self.source_of(name).name
        assert short == self.short or self.has_arrived(source), f"{name}: {short} went before {self.short} has arrived"

    # --- snapshots and bookmarks --------------------------------------------------------------------------------------
    def take(self, names: Iterable[str], properties: Mapping[str, str]) -> tuple[libzfs.Left, ...]:
        self.call("snapshot")
        there = {one.name for one in self.snapshots}
        left = [name for name in names if name in there]
        for name in [name for name in names if name not in there]:
            self.add(name, 100 + len(self.content), properties[user_properties.TASK])
        return tuple(libzfs.Left(name, libzfs.SAID["SnapshotExists"]) for name in left)

    def add(self, name: str, guid: int, task: str = "") -> None:
        txg = max((one.txg for one in self.snapshots), default=0) + 1
        self.content[guid] = self.live[name.partition("@")[0]]
        self.snapshots.append(Snapshot(name, guid, txg, START + timedelta(hours=self.number), task=task))

    def bookmark(self, wanted: Mapping[str, str]) -> None:
        self.call("bookmark")
        if set(wanted) & self.marks.keys():
            raise Failed("The bookmarks were not made", libzfs.SAID["BookmarkExists"])
        for mark, name in wanted.items():
            self.marks[mark] = next(one for one in self.snapshots if one.name == name)

    def destroy_bookmarks(self, names: Iterable[str]) -> None:
        for name in names:
            self.call(f"destroy {name}")
            if name in self.marks:
                self.may_go(name.partition("#")[0], self.marks.pop(name).short)

    def destroy(self, names: Iterable[str]) -> tuple[libzfs.Left, ...]:
        for name in names:
            self.call(f"destroy {name}")
            if any(one.name == name for one in self.snapshots):
                self.may_go(*name.split("@"))
            self.snapshots = [one for one in self.snapshots if one.name != name]
        return ()

    def list_snapshots(self, names: Iterable[str]) -> Iterator[Snapshot]:
        wanted = set(names)
        self.call(f"list {' '.join(sorted(wanted))}")
        before: dict[str, int] = {}
        for one in self.snapshots:
            if one.dataset in wanted:
                changed = before.get(one.dataset) != self.content[one.guid]
                before[one.dataset] = self.content[one.guid]
                yield replace(one, written=4096 if changed else 0)

    def list_bookmarks(self, names: Iterable[str], kind: str, _columns: str) -> Iterator[Mapping[str, Any]]:
        assert kind == "bookmark"
        wanted = set(names)
        self.call(f"list bookmarks of {' '.join(sorted(wanted))}")
        yield {
            "datasets": {
                mark: {
                    "properties": {
                        "guid": {"value": str(of.guid)},
                        "createtxg": {"value": str(of.txg)},
                        "creation": {"value": str(int(of.created.timestamp()))},
                    }
                }
                for mark, of in self.marks.items()
                if mark.partition("#")[0] in wanted
            }
        }

    # --- commands -----------------------------------------------------------------------------------------------------
    def run(self, argv: list[str], **_more: object) -> Result:
        self.call(" ".join(argv))
        match argv:
            case ["zpool", "get", *_]:
                said = "".join(f"feature@{name}\tactive\n" for name in transfer.FEATURES)
            case ["zfs", "get", "-H", "-p", "-r", *_]:
                self.find(argv[-1])
                below = (name for name in self.values if f"{name}/".startswith(f"{argv[-1]}/"))
                said = "".join(f"{name}\t{row}\n" for name in sorted(below) for row in self.rows(name, argv[-2]))
            case ["zfs", "get", *_]:
                said = "\n".join(self.rows(argv[-1], argv[-2])) if "@" not in argv[-1] else ""
            case ["zfs", "set", *pairs, name]:
                self.find(name).update(dict(pair.split("=", 1) for pair in pairs if pair != "-u"))
                said = ""
            case ["zfs", "create", *_]:
                self.values[argv[-1]] = {}
                said = ""
            case ["zfs", "receive", "-A", name]:
                del self.rests[name]
                self.discarded.append(name)
                if not self.of(name):
                    del self.values[name]
                said = ""
            case ["zfs", "send", "-n", "-v", "-t", text]:
                said = self.read_token(text)
            case ["zfs", "send", "-n", "-P", *_]:
                said = "size\t1000\n"
            case _:
                raise AssertionError(argv)
        return Result(tuple(argv), 0, said, "", 0)

    def find(self, name: str) -> dict[str, str]:
        if name not in self.values:
            raise CommandFailed(Result(("zfs",), 1, "", f"cannot open '{name}': dataset does not exist", 0))
        return self.values[name]

    def rows(self, name: str, wanted: str) -> list[str]:
        rest = self.rests.get(name)
        half = bool(rest) and not self.of(name)
        values = {
            **self.find(name),
            "guid": "1",
            "written": "4096" if half else "0",
            "available": str(2**40),
            copies.RESUME: rest.text if rest else "-",
        }
        return [f"{key}\t{values[key]}\tlocal" for key in wanted.split(",") if key in values]

    def read_token(self, text: str) -> str:
        """As OpenZFS 2.3.9 prints it (``recorded/zfs-send-token-2.3.9.txt``); the lines of an increment and of a raw
        one are made up as in ``test_token.py``."""
        token = next(one for one in self.rests.values() if one.text == text)
        lines = [
            "resume token contents:",
            "nvlist version: 0",
            "\tobject = 0x2",
            "\toffset = 0x1c0000",
            "\tbytes = 0x1f4",
        ]
        if token.from_guid:
            lines.append(f"\tfromguid = {token.from_guid:#x}")
        if token.raw:
            lines.append("\trawok = 1")
        return "\n".join([*lines, f"\ttoguid = {token.to_guid:#x}", f"\ttoname = {token.to_name}", ""])

    # --- streams ------------------------------------------------------------------------------------------------------
    def send(self, sender: list[str], receiver: list[str], *_how: object, **_more: object) -> int:
        assert "-F" not in receiver
        target, newest = receiver[-1], self.newest(receiver[-1])
        if "-t" in sender:
            rest = next(one for one in self.rests.values() if one.text == sender[-1])
            name, base = rest.to_name, sender[-1]
        else:
            assert target not in self.rests, "ZFS refuses another stream while something is half received"
            name, base = sender[-1], sender[sender.index("-i") + 1] if "-i" in sender else ""
        to = next(one for one in self.snapshots if one.name == name)
        assert to.guid in self.guids_marked(to.dataset), f"{name} is sent, and has no bookmark"
        self.call(f"send {name}")
        if "-t" not in sender:
            self.receive_start(to, base, target, receiver, raw="-w" in sender)
        self.call(f"half of {name}")
        del self.rests[target]
        if not self.loses_streams:
            txg = max(one.txg for one in self.snapshots) + 1
            self.snapshots.append(replace(to, name=f"{target}@{to.short}", txg=txg, task=""))
            self.arrived.append((target, to.guid, base))
        self.call(f"arrived {name}")
        return 500 if newest is None else 100

    def receive_start(self, to: Snapshot, base: str, target: str, receiver: list[str], *, raw: bool) -> None:
        newest = self.newest(target)
        if not base:
            assert target not in self.values, f"a whole stream onto {target}, which is there"
            options = [word for flag, word in itertools.pairwise(receiver) if flag == "-o"]
            self.values[target] = dict(option.split("=", 1) for option in options)
        else:
            from_guid = (
                self.marks[base].guid if "#" in base else next(one.guid for one in self.snapshots if one.name == base)
            )
            assert newest and newest.guid == from_guid, f"{target} does not end with {base}"
            if any(one.short == to.short for one in self.of(target)):
                raise NotReceived(1, f"cannot restore to {target}@{to.short}: destination already exists")
        self.rests[target] = Token(
            f"1-{to.guid:x}-{len(self.calls):x}", to.guid, to.name, newest.guid if newest else 0, raw=raw
        )
