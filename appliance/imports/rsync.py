"""What is asked of rsync, and what it says. rsync's own words are those of version 3.5 (tests/unit/recorded)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from appliance.facts.file_import import Count, FileImport
from appliance.imports.sandbox import FOLDER
from appliance.imports.sources import source_of
from appliance.message import Message

# Folders of the other NAS's own: snapshots, thumbnails, recycle bins, what a check of the disk has found.
# At every depth, because ``--one-file-system`` does not keep rsync out of snapshots that are not mounted yet.
LEFT_OUT = (
    ".zfs",
    ".snapshot",
    ".snapshots",
    "#snapshot",
    "@Recently-Snapshot",
    "~snapshot",
    "@eaDir",
    "#recycle",
    "@Recycle",
    ".@__thumb",
    "@tmp",
    "#tmp",
    ".AppleDB",
    ".TemporaryItems",
    "lost+found",
)
TRASH = ".Trash-*"
PARTIAL = ".larder-partial"  # in each folder: what has arrived of a file
SCRATCH = ".larder-importing"  # at the top: files that are not complete
REPLACED = ".larder-replaced-"  # at the top: older versions that newer ones have taken the place of
SECONDS_OF_SILENCE = 300
MOST_NAMED, LONGEST_NAMED = 20, 300
GONE = "file has vanished:"
MISSING = b"+++"
TRANSFER = re.compile(rb"^\s*(\d+)\s+\d+%\s")
ITEM = re.compile(rb"^([<>ch.*])([fdLDS])(\S*) +(\d+) (.*)$")
HIDDEN = re.compile(rb"^\[sender\] hiding (directory|file) (.*) because of pattern (.*?)/?$")
SPECIAL = re.compile(rb'^skipping non-regular file "(.*)"$')
OUTSIDE = re.compile(rb'^ignoring unsafe symlink "(.*)" -> "(.*)"$')


def filters() -> Iterator[str]:
    # of the attributes only those of users: others name the users of the other NAS, or give rights
    yield "--filter=-x! user.*"
    for name in (*LEFT_OUT, TRASH, PARTIAL, SCRATCH, f"{REPLACED}*"):
        yield f"--filter=- {name}/"


def options(owners: Iterable[tuple[str, int]] = ()) -> Iterator[str]:
    """What holds for every call, whatever is done."""
    yield from (
        "--recursive",
        "--links",
        "--safe-links",
        "--times",
        "--hard-links",
        "--sparse",
        "--xattrs",
        "--one-file-system",
    )
    yield from ("--no-perms", "--no-group", "--no-devices", "--no-specials", "--no-human-readable")
    yield "--chmod=Dug=rwx,Do=,Fug=rwX,Fo="  # the access list that the folder hands on decides within that
    mapped = ",".join((*(f"{name}:{uid}" for name, uid in owners), "*:0"))
    yield from (("--owner", f"--usermap={mapped}") if mapped != "*:0" else ("--no-owner",))
    yield from (f"--timeout={SECONDS_OF_SILENCE}", f"--partial-dir={PARTIAL}")
    yield from filters()


def rsync_argv(task: FileImport, more: Iterable[str], owners: Iterable[tuple[str, int]] = ()) -> list[str]:
    """The command that brings the other NAS's folder into the folder of the sandbox."""
    source = source_of(task)
    # Between two computers file names travel by the protocol. rsync 3.5 refuses the option for two local folders.
    words = [*source.options(task), *([] if source.is_mounted else ["--secluded-args"]), *options(owners)]
    return ["rsync", *words, *more, "--", source.operand(task), f"{FOLDER}/"]


def existing_options(task: FileImport, moment: str) -> list[str]:
    """What happens to files that are here already. Nothing is ever deleted."""
    if task.existing != "newer":
        return ["--ignore-existing"]
    return ["--update", "--backup", f"--backup-dir={REPLACED}{moment}"]


def count_argv(task: FileImport) -> list[str]:
    """A dry run that lists everything, and at the source what is left out.
    ``--ignore-existing`` would not list what is here."""
    update = ["--update"] if task.existing == "newer" else []
    # The side that reads the source says what is left out: the other NAS, or rsync itself where
    # the source is mounted here.
    hiding = (
        ["--debug=FILTER1", "-M--debug=FILTER0"]
        if source_of(task).is_mounted
        else ["--debug=FILTER0", "-M--debug=FILTER1"]
    )
    return rsync_argv(
        task,
        [
            "--dry-run",
            "-ii",
            "--out-format=%i %l %n",
            "--info=name1,nonreg1",
            *hiding,
            *update,
        ],
    )


def copy_argv(task: FileImport, moment: str, owners: Iterable[tuple[str, int]] = ()) -> list[str]:
    """``owners``: users there, each with the number of the one here who gets their files. All others are root's."""
    more = [f"--temp-dir={SCRATCH}", "--info=progress2,nonreg0", *existing_options(task, moment)]
    return rsync_argv(task, more, owners)


def compare_argv(task: FileImport) -> list[str]:
    """Read every file on both sides, and list those that differ; nothing is changed."""
    return rsync_argv(task, ["--dry-run", "--checksum", "-ii", "--out-format=%i %l %n", "--info=nonreg0"])


class Lines:
    """Cuts what comes in parts into lines, of at most so many bytes."""

    def __init__(self, most: int = 8192) -> None:
        self.rest, self.most = b"", most

    def cut(self, part: bytes) -> list[bytes]:
        *lines, rest = re.split(rb"[\r\n]", self.rest + part)
        self.rest = rest[: self.most]
        return lines


class RsyncListing(msgspec.Struct):
    """What a dry run lists. ``new``: files that would be copied, only those that are not here where ``keeps``;
    ``different`` names what is not as at the source."""

    files: int = 0
    folders: int = 0
    links: int = 0
    size: int = 0
    new: int = 0
    new_size: int = 0
    left_out: int = 0
    named: list[str] = msgspec.field(default_factory=list)
    different: list[str] = msgspec.field(default_factory=list)
    differing: int = 0
    most: int = MOST_NAMED
    keeps: bool = True
    lines: Lines = msgspec.field(default_factory=Lines)

    def take(self, part: bytes) -> None:
        for line in self.lines.cut(part):
            self.read(line)

    def read(self, line: bytes) -> None:
        if item := ITEM.match(line):
            self.count(item)
        elif hidden := HIDDEN.match(line):
            if hidden[3].decode(errors="replace") not in {PARTIAL, SCRATCH}:
                self.leave_out(hidden[2], Message("a folder of the other NAS's own"))
        elif special := SPECIAL.match(line):
            self.leave_out(special[1], Message("a device, pipe or socket"))
        elif outside := OUTSIDE.match(line):
            self.leave_out(outside[1], Message("a link that leads out of the folder"))

    def count(self, item: re.Match[bytes]) -> None:
        update, kind, attributes, size = item[1], item[2], item[3], int(item[4])
        if kind == b"f":
            self.files += 1
            self.size += size if update != b"h" else 0
            if update == b">" and (MISSING in attributes or not self.keeps):
                self.new += 1
                self.new_size += size
        elif kind == b"L":
            self.links += 1
        elif kind == b"d" and item[5] != b"./":
            self.folders += 1
        # For a folder, c is made anew; a hard link that is there already is h with nothing behind it.
        if update in {b">", b"c"} or (update == b"h" and attributes):
            self.differing += 1
            if len(self.different) < self.most:
                self.different.append(cut_name(item[5]))

    def leave_out(self, name: bytes, why: str) -> None:
        self.left_out += 1
        if len(self.named) < MOST_NAMED:
            self.named.append(str(Message("{name}: {reason}", name=cut_name(name), reason=why)))

    @property
    def found(self) -> Count:
        return Count(
            self.files, self.folders, self.links, self.size, self.new, self.new_size, self.left_out, tuple(self.named)
        )


def cut_name(name: bytes) -> str:
    """A name as rsync prints it, which escapes what is not printable."""
    text = name.decode(errors="replace")
    return text if len(text) <= LONGEST_NAMED else f"…{text[-LONGEST_NAMED:]}"


class RsyncTransfer:
    """The bytes that a copy has transferred so far."""

    def __init__(self) -> None:
        self.done, self.lines = 0, Lines()

    def take(self, part: bytes) -> None:
        for line in (*self.lines.cut(part), self.lines.rest):
            if found := TRANSFER.match(line):
                self.done = int(found[1])


def complaints(said: str) -> list[str]:
    """What rsync says of single files that it could not copy or read, without its own last lines."""
    lines = [line.strip() for line in said.splitlines() if line.startswith(("rsync:", "cannot "))]
    return [line for line in dict.fromkeys(lines) if "write error: Broken pipe" not in line]


def vanished(said: str) -> list[str]:
    """The files that were deleted at the source while it was read.
    That is no fault: what is not there is not copied."""
    lines = [line.partition(GONE)[2].strip() for line in said.splitlines() if line.startswith(GONE)]
    return list(dict.fromkeys(lines))
