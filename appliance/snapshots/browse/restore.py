"""Having a file or a folder back from a snapshot, beside what is there now or in its place."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC
from typing import Literal
from urllib.parse import unquote

from appliance import names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Snapshot
from appliance.operation import Plan, Step, Work, never
from appliance.snapshots.browse import listing
from appliance.snapshots.browse.copy_tree import Copying, attributes
from appliance.snapshots.hold_clone import SnapshotOperation
from appliance.zfs import private_mount, system_datasets

LONGEST_NAME = 255  # bytes
MOST_TRIES = 50


class RestoreFromSnapshot(SnapshotOperation, tag="restore-from-snapshot"):
    """Copy a file or folder out of a snapshot into the folder of now. Nothing that is there is erased.

    ``place``: ``beside`` gives it a name that says when it is from; ``back`` gives it its own name and place, and what is
    there under this name now gets one that says so.
    """

    needs_proof = never

    path: str
    place: Literal["beside", "back"] = "beside"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not names.parse_relative_path(self.path):
            raise names.refuse("Choose a file or folder in the snapshot.", "path")

    @property
    def parts(self) -> tuple[bytes, ...]:
        return names.parse_relative_path(self.path)

    @property
    def shown(self) -> str:
        """Its way as a person reads it."""
        return unquote(self.path, errors="replace")

    @property
    def title(self) -> str:
        return f"Restore {''.join(one if one.isprintable() else '?' for one in self.shown)[-120:]}"

    def lasts(self) -> bool:
        return True

    def locks(self) -> tuple[str, ...]:
        # Not the pool: copying may take hours, and snapshots go on being taken meanwhile.
        return (f"restoring {self.dataset}",)

    def files_used(self) -> tuple[str, ...]:
        return (self.dataset,)

    @property
    def temporary(self) -> bytes:
        """A name of its own in the same folder, the same each time: what an interrupted run left is found and removed."""
        return b".larder-restoring-" + hashlib.sha256(f"{self.guid} {self.path}".encode()).hexdigest()[:16].encode()

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        found = facts.dataset(self.dataset)
        if found is None:
            return
        if found.kind != "filesystem":
            yield Reason("", f"{self.dataset} is a volume: it holds a disk, not files.")
        elif found.locked:
            yield Reason("", f"{self.dataset} is locked. Unlock it first.")
        elif refusal := system_datasets.reason_against(found, facts.datasets):
            yield refusal
        elif not found.mounted or found.mountpoint == "/":
            yield Reason("", f"{self.dataset} is not mounted. Mount it first.")
        elif found.readonly:
            yield Reason("", f"{self.dataset} can only be read. Make a folder from the snapshot instead.")

    def plan(self, facts: Facts) -> Plan:
        moment = self.moment(facts)
        dataset = facts.dataset(self.dataset)
        top = dataset.mountpoint if dataset else ""
        summary = (
            f"{self.shown} is copied out of the snapshot, with “(from {moment})” in its name."
            if self.place == "beside"
            else f"{self.shown} is as it was at {moment} again. What is there under this name now stays, with “(replaced {moment})” in its name."
        )
        return Plan(
            summary=summary,
            steps=(
                Step("restore", "Copy it out of the snapshot", f"cp -a {top}/.zfs/snapshot/{self.snapshot.partition('@')[2]}/… {top}/…", lambda work: self.act(work, facts), (self.dataset,), "Delete the copy"),
            ),
            identity=self.identity(),
            warnings=("Who owns the files and who may use them is also as it was then. Look at that afterwards.",),
            undo="Nothing is erased by it.",
        )  # fmt: skip

    def moment(self, facts: Facts) -> str:
        found: Snapshot | None = self.there(facts)
        return f"{found.created.astimezone(UTC):%Y-%m-%d %H.%M.%S} UTC" if found else ""

    def act(self, work: Work, facts: Facts) -> None:
        dataset = listing.dataset_now(self.dataset)
        moment = self.moment(facts)
        with private_mount.root_of(self.snapshot) as root, listing.live(dataset) as now:
            if now is None:
                raise Failed(f"{self.dataset} is not mounted, so nothing was restored")
            with self.source(root) as source, made_way(root, now, self.parts[:-1], work) as into:
                copying = Copying(work)
                copying.count(source)
                clear(self.temporary, into)
                try:
                    copying.copy(source, self.temporary, into)
                    name = self.settle(into, moment, work)
                except BaseException as error:
                    with suppress(OSError):
                        clear(self.temporary, into)
                    if isinstance(error, OSError):
                        raise Failed(f"{self.shown} was not restored", error.strerror or "") from error
                    raise
        work.note(f"{readable(name)} is there: {copying.done_files} files and folders")
        if copying.left_out:
            work.note(f"{copying.left_out} pipes, sockets or devices were left out")
        if copying.stripped:
            work.note(f"{copying.stripped} files could run as another user (set-uid). They no longer do")

    @contextmanager
    def source(self, root: int) -> Iterator[int]:
        try:
            with private_mount.beneath(root, self.parts) as found:
                if not (stat.S_ISDIR(mode := os.fstat(found).st_mode) or stat.S_ISREG(mode)):
                    raise Refused(Reason("", "Only files and folders are restored. Larder follows no links."))
                yield found
        except FileNotFoundError as error:
            raise Refused(Reason("", f"There is no {self.shown} in this snapshot.")) from error

    def settle(self, into: int, moment: str, work: Work) -> bytes:
        """Give the complete copy its name; the name. What has this name already is moved aside, never overwritten."""
        own = self.parts[-1]
        if self.place == "beside":
            name = free_name(into, own, f"(from {moment})")
        else:
            name = own
            if exists(into, own):
                aside = free_name(into, own, f"(replaced {moment})")
                rename(into, own, aside)
                work.note(f"What was there is called {readable(aside)} now")
        rename(into, self.temporary, name)
        os.fsync(into)
        return name

    def probe(self, step: str, facts: Facts) -> bool:
        """Whether it is there as it was then: the copy gets its name last, complete."""
        dataset = listing.dataset_now(self.dataset)
        own, moment = self.parts[-1], self.moment(facts)
        wanted = own if self.place == "back" else with_words(own, f"(from {moment})")
        try:
            with private_mount.root_of(self.snapshot) as root, listing.live(dataset) as now:
                if now is None:
                    return False
                with (
                    private_mount.beneath(root, self.parts) as then,
                    private_mount.beneath(now, (*self.parts[:-1], wanted)) as found,
                ):
                    one, other = os.fstat(then), os.fstat(found)
        except (OSError, Refused, Failed):
            return False
        return (stat.S_IFMT(one.st_mode), one.st_mtime_ns) == (stat.S_IFMT(other.st_mode), other.st_mtime_ns) and (
            stat.S_ISDIR(one.st_mode) or one.st_size == other.st_size
        )  # fmt: skip

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return f"Nothing that was there is lost. Restore it again; a part that was left ({self.temporary.decode()}) is then removed."


def readable(name: bytes) -> str:
    return "".join(one if one.isprintable() else "?" for one in name.decode(errors="replace"))


def with_words(name: bytes, words: str, number: int = 1) -> bytes:
    """A name that says more, before its ending, cut where it would be too long: ``a.txt`` to ``a (words).txt``."""
    stem, dot, ending = name.rpartition(b".")
    if not stem or len(ending) > 20:
        stem, dot, ending = name, b"", b""
    more = f" {words}{f' {number}' if number > 1 else ''}".encode()
    room = LONGEST_NAME - len(more) - len(dot) - len(ending)
    if len(stem) > room:
        try:
            stem.decode()
            stem = stem[:room].decode(errors="ignore").encode()
        except UnicodeDecodeError:
            stem = stem[:room]
    return stem + more + dot + ending


def exists(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def rename(folder: int, name: bytes, to: bytes) -> None:
    """Another name in the same folder; nothing is overwritten, whoever is quicker (renameat2(2), RENAME_NOREPLACE)."""
    try:
        private_mount.system("renameat2", folder, name, folder, to, 1)
    except FileExistsError as error:
        raise Failed(f"{readable(to)} came into being meanwhile. Restore it again") from error


def free_name(folder: int, name: bytes, words: str) -> bytes:
    for number in range(1, MOST_TRIES):
        wanted = with_words(name, words, number)
        if not exists(folder, wanted):
            return wanted
    raise Failed("There are too many copies of it already. Move some away first")


def clear(name: bytes, folder: int) -> None:
    """Remove what an earlier run left. Links are removed, not followed (shutil: rmtree with dir_fd)."""
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass


@contextmanager
def made_way(root: int, now: int, parts: tuple[bytes, ...], work: Work) -> Iterator[int]:
    """The folder of now that lies that way down, opened; those on the way that are gone are made as they were then."""
    device = os.fstat(now).st_dev
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=now)
    try:
        for depth, part in enumerate(parts, 1):
            new = False
            try:
                os.mkdir(part, 0o700, dir_fd=handle)
                new = True
            except FileExistsError:
                pass
            try:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
            except OSError as error:
                raise Failed(f"{readable(part)} is no folder any more, so nothing can be put there") from error
            os.close(handle)
            handle = below
            if os.fstat(handle).st_dev != device:
                raise Failed(f"{readable(part)} is another folder with snapshots of its own now")
            if new:
                work.note(f"The folder {readable(part)} was gone and is there again")
                with private_mount.beneath(root, parts[:depth]) as then:
                    read = private_mount.opened(then, os.O_RDONLY | os.O_DIRECTORY)
                    try:
                        attributes(read, handle, os.fstat(read))
                    finally:
                        os.close(read)
        yield handle
    finally:
        os.close(handle)
