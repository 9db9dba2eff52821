"""The settings database on the disk: whether it is sound, its daily copies, and how the newest takes its place.

Works on files, before Django opens them. A copy is made by ``VACUUM INTO``; it is named by a number, so that the newest
is known whatever the clock says, and by its time. Damaged files are kept in ``damaged-<number>-<time>`` beside.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import msgspec

from appliance.formatting import moment_text
from appliance.message import Message, join_messages
from appliance.schedule import box_zone
from appliance.system import atomic_file

log = logging.getLogger(__name__)
EVERY = timedelta(days=1)
LATE = timedelta(days=3)
COPIES_KEPT, DAMAGED_KEPT = 5, 3
TIME = "%Y%m%dT%H%M%SZ"
# As SQLite's extended result codes, https://sqlite.org/rescode.html: an error while writing says
# nothing of what is stored.
DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
UNREADABLE = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
# The number says which was first, whatever the clock said. Folders of earlier versions have none.
DAMAGED = re.compile(r"damaged-(?:(?P<number>\d{6,})-)?(?P<at>\d{8}T\d{6}Z)(?:-(?P<same>\d+))?")
ROOM = 32 * 2**20  # that has to be left on the system disk after a copy was made


class SettingsCopy(msgspec.Struct, frozen=True):
    """A copy of the database as it was at ``made``."""

    path: Path
    number: int
    made: datetime


class DamagedFolder(msgspec.Struct, frozen=True):
    """Where a damaged database is kept since ``at``. ``number``: as which of all it was damaged, 0 where that was not
    noted; ``same``: which it is of several of one second."""

    path: Path
    number: int
    at: datetime
    same: int = 0


class Notice(msgspec.Struct, frozen=True):
    """The database was damaged. ``copy``: as of when the copy is that took its place; None where there was none.

    ``done``: false until it has, so that a start after a power cut goes on with the same reason and folder.
    """

    at: datetime
    reason: str
    kept: str
    copy: datetime | None = None
    done: bool = True

    @property
    def headline(self) -> str:
        if self.copy:
            moment = moment_text(self.copy.astimezone(box_zone()))
            return Message("The settings were restored from a copy of {moment}.", moment=moment)
        return Message("Larder's settings were lost. It started with empty ones.")

    @property
    def meaning(self) -> str:
        gone = (
            Message(
                "Changes made after that copy are gone: check notifications and schedules. Schedules leave "
                "the snapshots alone that they took since then: see the page Automatic snapshots."
            )
            if self.copy
            else Message(
                "There was no copy. Pools, folders, shares and users are not affected: set up Larder's "
                "password, notifications and schedules again. Schedules leave the snapshots alone that were "
                "taken before: see the page Automatic snapshots."
            )
        )
        return join_messages(
            [
                Message("The settings database was damaged ({reason}).", reason=self.reason),
                Message("It is kept in {folder}.", folder=self.kept) if self.kept else "",
                gone,
            ]
        )


def notice_file(database: Path) -> Path:
    return database.with_name("settings-notice.json")


def write_notice(database: Path, notice: Notice) -> None:
    """Have the next pages tell of it. A full disk keeps no copy from taking its place for it."""
    try:
        atomic_file.write_atomically(notice_file(database), msgspec.json.encode(notice))
    except OSError as problem:
        log.error("The notice about the damaged settings could not be written: %s", problem)


def read_notice(database: Path) -> Notice | None:
    """What became of a damaged database; None where it never was."""
    try:
        return msgspec.json.decode(notice_file(database).read_bytes(), type=Notice)
    except (OSError, msgspec.MsgspecError):
        return None


# --- whether it is sound ----------------------------------------------------------------------------------------
def check_file(path: Path) -> str:
    """What is wrong with a database file, in SQLite's words; empty where it is sound.

    Raises sqlite3.Error where it cannot be told: locked, or no right to open it.
    """
    if not path.stat().st_size:
        return "the file is empty"
    try:
        with closing(sqlite3.connect(path, timeout=20)) as database:
            found = [str(row[0]) for row in database.execute("PRAGMA quick_check(1)")]
    except sqlite3.DatabaseError as problem:
        if is_damage(problem):
            return str(problem)
        raise
    return "" if found == ["ok"] else " ".join(found).replace("*** in database main ***", "").strip()[:300]


def is_damage(problem: BaseException | None) -> bool:
    """Whether SQLite says that the file itself is bad, and not merely locked or out of reach."""
    code = getattr(problem, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF in DAMAGE or code in UNREADABLE)


# --- copies -----------------------------------------------------------------------------------------------------
def folder_of(database: Path) -> Path:
    return database.with_name("copies")


def list_copies(database: Path) -> list[SettingsCopy]:
    """The copies, the newest first."""
    found = []
    for path in folder_of(database).glob("settings-*.sqlite3"):
        with suppress(ValueError):
            _settings, number, made = path.stem.split("-")
            found.append(SettingsCopy(path, int(number), datetime.strptime(made, TIME).replace(tzinfo=UTC)))
    return sorted(found, key=lambda one: one.number, reverse=True)


def copy_due(database: Path, now: datetime) -> bool:
    """Whether a day has passed since the last copy, and the database has changed.
    A time to come is none that has been."""
    known = list_copies(database)
    return not known or (not timedelta() <= now - known[0].made < EVERY and last_written(database) != mark_of(known[0]))


def is_late(database: Path, now: datetime) -> bool:
    """Whether the newest copy is older than it should be."""
    known = list_copies(database)
    return not known or (now - known[0].made > LATE and last_written(database) != mark_of(known[0]))


def last_written(database: Path) -> int:
    """When the database was last written to, in nanoseconds."""
    times = [path.stat().st_mtime_ns for path in (database, path_beside(database, "-wal")) if path.exists()]
    return max(times, default=0)


def mark_of(copy: SettingsCopy) -> int:
    """When the database was last written to before this copy was made."""
    return copy.path.stat().st_mtime_ns


def make_copy(database: Path, now: datetime) -> SettingsCopy:
    """Make a copy and forget the oldest. Raises OSError where there is no room,
    sqlite3.Error where it cannot be read."""
    folder = folder_of(database)
    folder.mkdir(mode=0o700, exist_ok=True)
    size = sum(path.stat().st_size for path in (database, path_beside(database, "-wal")) if path.exists())
    if shutil.disk_usage(folder).free < size + ROOM:
        raise OSError("the system disk has no room for another copy of the settings")
    new, mark = folder / "new.sqlite3", last_written(database)
    new.unlink(missing_ok=True)
    with closing(sqlite3.connect(database, timeout=20, isolation_level=None)) as source:
        source.execute("VACUUM INTO ?", [str(new)])
    if wrong := check_file(new):
        new.unlink()
        raise sqlite3.DatabaseError(f"the copy is not sound: {wrong}")
    new.chmod(0o600)
    os.utime(new, ns=(mark, mark))
    sync_file(new)
    known = list_copies(database)
    number = known[0].number + 1 if known else 1
    target = folder / f"settings-{number:06d}-{now.astimezone(UTC):{TIME}}.sqlite3"
    new.replace(target)
    atomic_file.sync_folder(folder)
    for old in list_copies(database)[COPIES_KEPT:]:
        old.path.unlink(missing_ok=True)
    return list_copies(database)[0]


# --- restoring --------------------------------------------------------------------------------------------------
def ensure_sound(database: Path, now: datetime) -> Notice | None:
    """Put the newest good copy in the place of a database that is damaged or gone; what was
    done, None where it is sound.

    A power cut in the middle leaves a database that is gone, and the next start goes on from there.
    """
    told = read_notice(database)
    unfinished = told if told and not told.done else None
    if not database.exists():
        if not folder_of(database).exists():
            return None  # a new box
        if unfinished:
            return restore_copy(database, now, unfinished.reason, Path(unfinished.kept) if unfinished.kept else None)
        return restore_copy(database, now, "the file was gone")
    if reason := check_file(database):
        return restore_copy(database, now, reason)
    if unfinished:  # the power went when the copy had just taken its place
        write_notice(database, msgspec.structs.replace(unfinished, done=True))
    return None


def restore_copy(database: Path, now: datetime, reason: str, kept: Path | None = None) -> Notice:
    """Move the database aside and put a copy in its place, or nothing where no copy is good.
    The notice is written first.

    ``kept``: where a start before this one has begun to move it to.
    """
    good = next((one for one in list_copies(database) if not unsound(one.path)), None)
    ready = prepare_copy(good.path, database.with_name("settings.sqlite3.new")) if good else None
    parts = [path for path in parts_of(database) if path.exists()]
    if kept and not kept.is_dir():
        kept = None
    if parts and not kept:
        kept = place_for_damaged(database, now)
    found = Notice(at=now, reason=reason, kept=str(kept or ""), copy=good.made if good else None, done=False)
    write_notice(database, found)
    if kept:
        # The database goes first: what SQLite keeps beside it counts for nothing without it.
        for path in parts:
            path.replace(kept / path.name)
        # Both folders, before the copy comes: SQLite would replay an old log that a power cut
        # had brought back beside it.
        atomic_file.sync_folder(kept)
        atomic_file.sync_folder(database.parent)
    if ready:
        ready.replace(database)
    atomic_file.sync_folder(database.parent)
    found = msgspec.structs.replace(found, done=True)
    write_notice(database, found)
    log.error("%s %s", found.headline, found.meaning)
    return found


def unsound(path: Path) -> str:
    try:
        return check_file(path)
    except (OSError, sqlite3.Error) as problem:
        return str(problem)


def prepare_copy(copy: Path, new: Path) -> Path:
    """The file that can take the database's place: ``new``, or the copy itself where the disk
    has no room for a second one.

    That one keeps its name until then, so that the next start finds it after a power cut.
    """
    try:
        shutil.copyfile(copy, new)
        new.chmod(0o600)
        sync_file(new)
    except OSError:
        new.unlink(missing_ok=True)
        return copy
    return new


def place_for_damaged(database: Path, now: datetime) -> Path:
    """A new folder for a damaged database; another goes when there are too many."""
    known = list_damaged(database)
    number = known[-1].number + 1 if known else 1
    while len(known) >= DAMAGED_KEPT:
        old = least_valuable(database, known)
        shutil.rmtree(old.path, ignore_errors=True)
        known.remove(old)
    kept = database.with_name(f"damaged-{number:06d}-{now.astimezone(UTC):{TIME}}")
    kept.mkdir(mode=0o700)
    return kept


def least_valuable(database: Path, known: list[DamagedFolder]) -> DamagedFolder:
    """One without a database, as a power cut leaves it; else the one that followed its
    predecessor soonest, never the first.

    Where no copy was good, Larder went on with empty settings, so what was damaged soon after holds next to nothing.
    """
    for one in known:
        if not (one.path / database.name).exists():
            return one
    gaps = {later: abs(later.at - former.at) for former, later in pairwise(known)}
    return min(gaps, key=lambda one: gaps[one])


def list_damaged(database: Path) -> list[DamagedFolder]:
    """The folders of damaged databases, the first that was damaged first."""
    found = []
    for path in database.parent.glob("damaged-*"):
        with suppress(ValueError):
            if match := DAMAGED.fullmatch(path.name):
                at = datetime.strptime(match["at"], TIME).replace(tzinfo=UTC)
                found.append(DamagedFolder(path, int(match["number"] or 0), at, int(match["same"] or 0)))
    return sorted(found, key=lambda one: (one.number, one.at, one.same))


def parts_of(database: Path) -> list[Path]:
    return [database, *(path_beside(database, ending) for ending in ("-wal", "-shm", "-journal"))]


def path_beside(database: Path, ending: str) -> Path:
    return database.with_name(database.name + ending)


def sync_file(path: Path) -> None:
    with path.open("rb") as handle:
        os.fsync(handle.fileno())
