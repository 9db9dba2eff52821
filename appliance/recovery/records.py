"""Where records lie: a dataset of each pool, mounted by nobody, with a folder for each box that has left one there.

It is reached in a mount namespace of the agent's own. What is read may come with disks from anywhere: no link is
followed, nothing is read that is no plain file, and no more of it than a record can have.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from appliance import command
from appliance.errors import Failed, Reason, Refused
from appliance.facts import box_record, user_properties
from appliance.facts.box_record import BoxMark, BoxMarks, BoxRecord, parse_marks, parse_record
from appliance.facts.datasets import Dataset
from appliance.message import Message
from appliance.recovery import box_settings, kept_settings
from appliance.recovery.box_settings import BoxSettings, FoundSettings
from appliance.system import locks
from appliance.zfs import private_mount
from appliance.zfs.system_datasets import record_dataset

RECORD, SEALED, SETTINGS = "record.json", "secrets.age", "settings.json"
# Not encrypted: on a new box it has to be read before any key is there. Its secrets are sealed.
PROPERTIES = {
    "canmount": "off",
    "mountpoint": "none",
    "setuid": "off",
    "devices": "off",
    "exec": "off",
    "sharenfs": "off",
    "sharesmb": "off",
    "encryption": "off",
    "quota": "256M",
}
SECONDS = 120
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def missing_box() -> Reason:
    return Reason("record-missing", "The record of that box is not on this pool. Look at the page again.")


def marks_of(root: Dataset | None) -> BoxMarks:
    """The boxes that have left a record, by the top folder of a pool."""
    noted = root.properties.get(user_properties.BOX) if root else None
    return parse_marks(noted.value) if noted and noted.source == "local" else BoxMarks()


def create_argv(pool: str) -> list[str]:
    options = [word for key, value in PROPERTIES.items() for word in ("-o", f"{key}={value}")]
    return ["zfs", "create", *options, "--", record_dataset(pool)]


def command_text(pool: str) -> str:
    """What a step shows that writes a record."""
    return f"write {record_dataset(pool)}\n{shlex.join(['zfs', 'set', f'{user_properties.BOX}=…', pool])}"


def ensure_dataset(pool: str) -> None:
    """Make the dataset for records where there is none. Raises Failed."""
    there = command.run(["zfs", "list", "-H", "-o", "name", record_dataset(pool)], timeout=SECONDS, accept=range(256))
    if there.status:
        command.run(create_argv(pool), timeout=SECONDS)


@contextmanager
def open_records(pool: str, *, write: bool = False) -> Iterator[int]:
    """A descriptor of the folder that the records of a pool lie in. Raises Failed."""
    flags = private_mount.WRITABLE if write else private_mount.SAFELY
    with (
        locks.hold_locks([f"the records of {pool}"]),  # ZFS mounts it in one way at a time
        private_mount.root_of(record_dataset(pool), flags) as root,
    ):
        yield root


def write_record(pool: str, record: BoxRecord, sealed: bytes, settings: BoxSettings | None = None) -> bool:
    """Put the record, its sealed secrets and the settings in place of the former ones: each is whole after a power cut.

    Without ``sealed`` it takes the place of no record that has sealed secrets: a box that has lost its phrase
    has mostly lost what they are the last copy of. Returns whether the settings that are there now are these, or
    none were given. Raises Failed.
    """
    written = True
    ensure_dataset(pool)
    with open_records(pool, write=True) as root:
        try:
            try:
                os.mkdir(record.box, 0o700, dir_fd=root)
            except FileExistsError:
                pass
            folder = os.open(record.box, FOLDER, dir_fd=root)
            try:
                # The secrets first: a record that says it has some is never without.
                if sealed:
                    write_file(folder, SEALED, sealed)
                elif has_file(folder, SEALED):
                    raise phrase_lost(pool)
                write_file(folder, RECORD, record.text)
                if settings and (written := may_write(folder, settings)):
                    write_file(folder, SETTINGS, settings.text)
                os.fsync(folder)
            finally:
                os.close(folder)
            os.fsync(root)
        except OSError as error:
            raise Failed(
                Message("The record of this box was not written to {pool}", pool=pool), error.strerror or ""
            ) from error
    return written


def phrase_lost(pool: str) -> Failed:
    return Failed(
        Message(
            "The passwords and keys in the record on {pool} are sealed for a recovery phrase that this box "
            "no longer has, so that record was left as it is",
            pool=pool,
        ),
        Message(
            "They can be opened with that phrase alone, so do not lose it. If this box has all its users and "
            "keys, make a new recovery phrase on the page Recovery: then the next record takes its place."
        ),
    )


def may_write(folder: int, settings: BoxSettings) -> bool:
    """Whether no settings of another database are there, and none of a newer Larder. Damaged ones are none."""
    try:
        found = box_settings.read_settings(read_from(folder, SETTINGS)).settings
    except OSError:
        return True
    except Refused as refused:
        return refused.reasons[0].code != box_record.too_new().code
    return kept_settings.may_replace(found, settings)


def write_file(folder: int, name: str, content: bytes) -> None:
    beside = f".{name}.new"
    remove_file(folder, beside)
    handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)


def has_file(folder: int, name: str) -> bool:
    """Whether something has this name. Raises OSError."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def remove_file(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass


def read_file(root: int, box: str, name: str) -> bytes:
    """One file of a box's folder. Raises Refused where it is missing or is none that Larder wrote."""
    try:
        folder = os.open(box, FOLDER, dir_fd=root)
        try:
            return read_from(folder, name)
        finally:
            os.close(folder)
    except OSError as error:
        raise Refused(missing_box()) from error


def read_from(folder: int, name: str) -> bytes:
    """One file of an open folder. Raises OSError where there is none, Refused where it is none that Larder wrote."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > box_record.LARGEST:
            raise Refused(box_record.malformed())
        return file.read(box_record.LARGEST)


def check_box(box: str) -> str:
    if not box_record.BOX_ID.fullmatch(box):
        raise Refused(Reason("box-id-invalid", "That is not the record of a box.", field="box"))
    return box


def read_record(pool: str, box: str) -> BoxRecord:
    """The record that a box has left on a pool. Raises Refused, Failed."""
    with open_records(pool) as root:
        record = parse_record(read_file(root, check_box(box), RECORD))
    if record.box != box:
        raise Refused(box_record.malformed())
    return record


def read_sealed(pool: str, box: str) -> bytes:
    """The sealed secrets of a box. Raises Refused, Failed."""
    with open_records(pool) as root:
        return read_file(root, check_box(box), SEALED)


def read_settings(pool: str, box: str) -> FoundSettings:
    """The settings in the record of a box. Raises Refused, Failed."""
    with open_records(pool) as root:
        try:
            text = read_file(root, check_box(box), SETTINGS)
        except Refused as refused:
            if isinstance(refused.__cause__, FileNotFoundError):
                raise Refused(no_settings()) from refused
            raise
    return box_settings.read_settings(text)


def read_only_pool(pool: str) -> Reason:
    return Reason(
        "record-pool-read-only",
        "{pool} was imported read-only. Export it, then import it without read-only.",
        pool=pool,
    )


def no_settings() -> Reason:
    return Reason("settings-missing", "The record of that box has no settings of Larder. An earlier version wrote it.")


def set_mark(pool: str, marks: BoxMarks, mark: BoxMark) -> None:
    """Note on the pool that a box has left its record there, or that another has taken its place. Raises Failed."""
    command.run(["zfs", "set", f"{user_properties.BOX}={marks.with_mark(mark).text}", pool], timeout=SECONDS)


def read_marks(pool: str) -> BoxMarks:
    """The boxes that a pool names, now. Raises Failed."""
    argv = ["zfs", "get", "-H", "-p", "-o", "value,source", user_properties.BOX, pool]
    value, _tab, source = command.run(argv, timeout=SECONDS).stdout.strip().partition("\t")
    return parse_marks(value) if source == "local" else BoxMarks()
