"""Restore a file or a folder from a snapshot, beside what is there now or in its place."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import unquote

from appliance import names, schedule
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import parse_copy_mark
from appliance.files import leftover
from appliance.formatting import printable_text
from appliance.message import Message
from appliance.operation import Plan, Step, Work, as_json, never
from appliance.snapshots.browse import listing, restore_record
from appliance.snapshots.browse.copy_tree import TreeCopy, copy_attributes
from appliance.snapshots.browse.restore_record import RestoreRecord
from appliance.snapshots.hold_clone import SnapshotOperation
from appliance.zfs import pool_sync, private_mount, system_datasets

LONGEST_NAME = 255  # bytes
MOST_TRIES = 50
LONGEST_TITLE = 120


class RestoreFromSnapshot(SnapshotOperation, tag="restore-from-snapshot"):
    """Copy a file or folder out of a snapshot into the folder of now. Nothing that is there is erased.

    Out of a copy that a backup made it goes into the original folder, and nowhere else.
    ``place``: ``beside`` adds the snapshot's date to the name of the copy. ``back`` restores to the original name, and
    renames what has this name now. ``free`` restores to the original name if nothing has it now, else as ``beside``.
    """

    needs_proof = never

    path: str
    place: Literal["beside", "back", "free"] = "beside"
    into: str = ""  # for a snapshot of a backup's copy: the original folder

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.into:
            names.existing_dataset(self.into, field="into")
        if not names.parse_relative_path(self.path):
            raise Refused(Reason("path-not-chosen", "Choose a file or folder.", field="path"))

    @property
    def folder(self) -> str:
        """The dataset that it is restored into."""
        return self.into or self.dataset

    @property
    def parts(self) -> tuple[bytes, ...]:
        return names.parse_relative_path(self.path)

    @property
    def path_text(self) -> str:
        """The path as text."""
        return unquote(self.path, errors="replace")

    @property
    def title(self) -> str:
        return Message("Restore {printable_text}", printable_text=printable_text(self.path_text)[-LONGEST_TITLE:])

    def lasts(self) -> bool:
        return True

    def locks(self) -> tuple[str, ...]:
        # Not the pool: copying may take hours, and snapshots are still taken meanwhile.
        return (f"restoring {self.folder}",)

    def files_used(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.dataset, self.folder)))

    @property
    def temporary_name(self) -> bytes:
        """The copy's name until it is complete: the same each time, so leftovers of an interrupted run are found."""
        return b".larder-restoring-" + hashlib.sha256(f"{self.guid} {self.path}".encode()).hexdigest()[:16].encode()

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        source, dataset = facts.dataset(self.dataset), facts.dataset(self.folder)
        if source is None:
            return
        mark = parse_copy_mark(source.copy_of)
        if dataset is None or (self.into and (mark is None or mark.guid != dataset.guid)):
            yield Reason(
                "restore-not-original",
                "{copy} is not a copy of {folder}. Choose “Restore this folder” on the page of the copy instead.",
                copy=self.dataset,
                folder=self.folder,
            )
        elif mark and not self.into:
            yield original_gone(self.dataset)
        elif source.locked:
            yield listing.is_locked(self.dataset)
        elif dataset.kind != "filesystem":
            yield listing.is_volume(self.folder)
        elif dataset.locked:
            yield listing.is_locked(self.folder)
        elif refusal := system_datasets.reason_against(dataset, facts.datasets):
            yield refusal
        elif not dataset.mounted or dataset.mountpoint == "/":
            yield listing.not_mounted(self.folder)
        elif dataset.readonly:
            yield Reason(
                "restore-into-read-only",
                "{dataset} is read-only. Change that on its page, then restore again.",
                dataset=self.folder,
            )

    def describe_renames(self, moment: str) -> tuple[str, str]:
        """What restoring it does, and under which names the copy and what is there end, as for ``moment``."""
        at = {"path_text": self.path_text, "moment": moment}
        then = Message("{path_text} is restored as it was at {moment}.", **at)
        return {
            "beside": (
                Message("{path_text} is copied out of the snapshot, with “(from {moment})” in its name.", **at),
                Message("rename the copy to {path_text} (from {moment})", **at),
            ),
            "back": (
                Message(
                    "{then} What has this name now stays, with “(replaced {moment})” in its name.",
                    then=then,
                    moment=moment,
                ),
                Message("rename what is there to {path_text} (replaced {moment}), and the copy to {path_text}", **at),
            ),
            "free": (
                Message(
                    "{then} If something has this name now, the copy gets “(from {moment})” in its name.",
                    then=then,
                    moment=moment,
                ),
                Message("rename the copy to {path_text}, or to {path_text} (from {moment}) if that is taken", **at),
            ),
        }[self.place]

    def plan(self, facts: Facts) -> Plan:
        moment = self.moment_text(facts)
        dataset = facts.dataset(self.folder)
        top = dataset.mountpoint if dataset else ""
        summary, renames = self.describe_renames(moment)
        step = Step(
            "restore",
            Message("Copy it out of the snapshot"),
            Message(
                "mount {snapshot} read-only, where only this job sees it\n"
                "copy {path_text} from there to {top}, under a temporary name, without pipes, devices and "
                "set-uid bits\n"
                "{renames}",
                snapshot=self.snapshot,
                path_text=self.path_text,
                top=top,
                renames=renames,
            ),
            lambda work: self.restore(work, facts),
            (self.folder,),
            Message("Delete the copy"),
        )
        return Plan(
            summary=summary,
            steps=(step,),
            identity=self.plan_identity(),
            warnings=(Message("Owners and permissions are restored as they were then. Check them afterwards."),),
            undo=Message("Nothing is erased."),
        )

    def moment_text(self, facts: Facts) -> str:
        """When the snapshot was taken, by the box's clock and to the minute, as pages say it: its own
        name may be some seconds off."""
        snapshot = self.find_snapshot(facts)
        return f"{snapshot.created.astimezone(schedule.box_zone()):%Y-%m-%d %H.%M}" if snapshot else ""

    def restore(self, work: Work, facts: Facts) -> None:
        if known := facts.dataset(self.folder):
            restore_record.forget_record(known.guid)  # before anything else: an earlier restore would pass for this one
        dataset = listing.dataset_now(self.folder)
        moment = self.moment_text(facts)
        with private_mount.root_of(self.snapshot) as root, listing.open_live_folder(dataset) as now:
            if now is None:
                raise Failed(Message("{folder} is not mounted, so nothing was restored", folder=self.folder))
            with self.open_source(root) as source, open_target_folder(root, now, self.parts[:-1], work) as into:
                copy = TreeCopy(work)
                copy.count_tree(source)
                try:
                    with leftover.scratch_folder(self.temporary_name, into) as scratch:
                        copy.copy_entry(source, self.parts[-1], scratch)
                        # The name says that the copy is whole, so owners and modes of its folders
                        # have to be there before it.
                        pool_sync.sync_pool_of(self.folder)
                        name = self.name_copy(scratch, into, moment, dataset.guid, work)
                except OSError as error:
                    raise Failed(
                        Message("{path_text} was not restored", path_text=self.path_text), error.strerror or ""
                    ) from error
        work.note(
            Message(
                "{printable_name} is restored: {done_files} files and folders",
                printable_name=printable_name(name),
                done_files=copy.done_files,
            )
        )
        if copy.left_out:
            work.note(Message("{left_out} pipes, sockets or devices were left out", left_out=copy.left_out))
        if copy.stripped:
            work.note(
                Message(
                    "{stripped} files could run as another user (set-uid). They no longer do", stripped=copy.stripped
                )
            )

    @contextmanager
    def open_source(self, root: int) -> Iterator[int]:
        try:
            with private_mount.open_beneath(root, self.parts) as handle:
                if not (stat.S_ISDIR(mode := os.fstat(handle).st_mode) or stat.S_ISREG(mode)):
                    raise Refused(
                        Reason(
                            "link-not-restored",
                            "Larder restores only files and folders, not links or special files on their own.",
                        )
                    )
                yield handle
        except FileNotFoundError as error:
            raise Refused(
                Reason("path-not-in-snapshot", "There is no {path} in this snapshot.", path=self.path_text)
            ) from error

    def name_copy(self, scratch: int, into: int, moment: str, dataset: int, work: Work) -> bytes:
        """Give the complete copy its name and return it. What has this name already is renamed, never overwritten."""
        own = self.parts[-1]
        if self.place == "beside" or (self.place == "free" and name_exists(into, own)):
            name = free_name(into, own, f"(from {moment})")
        else:
            name = own
            if name_exists(into, own):
                aside = free_name(into, own, f"(replaced {moment})")
                rename_new(into, own, into, aside)
                work.note(
                    Message("What was there is called {printable_name} now", printable_name=printable_name(aside))
                )
        inode = os.stat(own, dir_fd=scratch, follow_symlinks=False).st_ino
        record = RestoreRecord(as_json(self), names.encode_relative_path([name]), inode)
        restore_record.write_record(dataset, record)
        rename_new(scratch, own, into, name)
        os.fsync(into)
        return name

    def probe(self, step: str, facts: Facts) -> bool:
        """Whether this very copy stands under the name that it was about to get: it gets it
        last, when it is complete."""
        dataset = facts.dataset(self.folder)
        record = restore_record.read_record(dataset.guid) if dataset else None
        if record is None or record.operation != as_json(self):
            return False
        way = (*self.parts[:-1], *names.parse_relative_path(record.name))
        try:
            with listing.open_live_folder(dataset) as now:
                if now is None:
                    return False  # locked since
                with private_mount.open_beneath(now, way) as found:
                    return os.fstat(found).st_ino == record.inode
        except (OSError, Refused, Failed):
            return False

    def recovery_hint(self, step: str, facts: Facts) -> str:
        left = self.temporary_name.decode()
        return Message(
            "Nothing that was there is lost. Restore it again; an incomplete copy ({left}) is then removed.", left=left
        )


def original_gone(copy: str) -> Reason:
    """Why nothing is restored on its own out of a copy whose original is not here, or which was set aside."""
    return Reason(
        "restore-original-gone",
        "Larder finds no original of the copy {copy} on this box. Choose “Restore this folder” on the page "
        "of the copy, or download the file.",
        copy=copy,
    )


def printable_name(name: bytes) -> str:
    return printable_text(name.decode(errors="replace"))


def insert_words(name: bytes, words: str, number: int = 1) -> bytes:
    """Insert words before a name's extension, and cut it if too long: ``a.txt`` becomes ``a (words).txt``."""
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


def name_exists(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def rename_new(folder: int, name: bytes, into: int, to: bytes) -> None:
    """Rename without ever overwriting, also in a race (renameat2(2), RENAME_NOREPLACE)."""
    try:
        private_mount.libc_function("renameat2", folder, name, into, to, 1)
    except FileExistsError as error:
        raise Failed(
            Message("{printable_name} was created meanwhile. Restore it again", printable_name=printable_name(to))
        ) from error


def free_name(folder: int, name: bytes, words: str) -> bytes:
    for number in range(1, MOST_TRIES):
        wanted = insert_words(name, words, number)
        if not name_exists(folder, wanted):
            return wanted
    raise Failed(Message("There are too many copies of it already. Move some of them first"))


@contextmanager
def open_target_folder(root: int, now: int, parts: tuple[bytes, ...], work: Work) -> Iterator[int]:
    """Open the folder of now at that path. Missing folders on the way are made as they were in the snapshot."""
    device = os.fstat(now).st_dev
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=now)
    try:
        for depth, part in enumerate(parts, 1):
            new = make_folder(handle, part)
            try:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
            except OSError as error:
                raise Failed(
                    Message(
                        "{printable_name} is not a folder any more, so nothing can be put there",
                        printable_name=printable_name(part),
                    )
                ) from error
            os.close(handle)
            handle = below
            if os.fstat(handle).st_dev != device:
                raise Failed(
                    Message(
                        "{printable_name} is now another folder with its own snapshots",
                        printable_name=printable_name(part),
                    )
                )
            if new:
                work.note(
                    Message(
                        "The folder {printable_name} was missing and was made again",
                        printable_name=printable_name(part),
                    )
                )
                with private_mount.open_beneath(root, parts[:depth]) as then:
                    read = private_mount.reopen_for_reading(then, os.O_RDONLY | os.O_DIRECTORY)
                    try:
                        copy_attributes(read, handle, os.fstat(read))
                    finally:
                        os.close(read)
        yield handle
    finally:
        os.close(handle)


def make_folder(above: int, name: bytes) -> bool:
    """Make a folder that only root may enter, unless the name exists. Returns whether it was made."""
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        return False
    return True
