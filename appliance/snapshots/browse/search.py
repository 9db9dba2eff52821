"""Search all snapshots of a dataset for files and folders by a part of their name, in pieces of a few seconds."""

from __future__ import annotations

import os
import stat
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import msgspec

from appliance import names
from appliance.errors import Reason, Refused
from appliance.facts.datasets import Snapshot
from appliance.request import Exchange, Request, Send, as_facts
from appliance.snapshots.browse import listing
from appliance.zfs import list_snapshots, private_mount

SECONDS = 4.0  # after which no further snapshot is begun
SECONDS_FOR_ONE = 30.0  # for all names of one snapshot
SECONDS_BETWEEN_REPORTS = 1.0
MOST = 200  # results, over all pieces
LONGEST_TEXT = 200


class Found(msgspec.Struct, frozen=True):
    """A file or folder as it is in the newest snapshot that holds it.
    ``entry.name`` is its whole path, percent-encoded."""

    entry: listing.FolderEntry
    snapshot: str  # short name
    guid: str


class SearchResult(msgspec.Struct, frozen=True):
    """A piece of a search. ``after``: the guid after which to go on with older snapshots; empty at the end.

    ``searched`` counts the snapshots behind us of all ``total``. ``full``: as many results as were asked for, so it
    stopped. ``complete``: every folder of these snapshots was read.
    """

    found: tuple[Found, ...]
    searched: int
    total: int
    after: str
    full: bool
    complete: bool


class Search(msgspec.Struct):
    """The state of a search while its snapshots are read, newest first.
    A path is told once: by the newest that has it."""

    text: str
    room: int
    report: Callable[[], None]
    complete: bool = True
    found: list[Found] = msgspec.field(default_factory=list)
    known: set[tuple[bytes, ...]] = msgspec.field(default_factory=set)
    reported: float = 0.0

    def read_snapshot(self, snapshot: Snapshot, now: int | None, newer: str) -> None:
        """Read the names of one snapshot. ``newer``: the last one of an earlier piece,
        whose paths are known already."""
        until = time.monotonic() + SECONDS_FOR_ONE
        with ExitStack() as stack:
            root = stack.enter_context(private_mount.root_of(snapshot.name))
            earlier = stack.enter_context(private_mount.root_of(newer)) if newer else None
            for folder, entry in self.walk_names(root):
                if time.monotonic() > until:
                    self.complete = False
                    break
                parts = (*folder, os.fsencode(entry.name))
                if not self.is_match(entry) or parts in self.known or (earlier is not None and exists(earlier, parts)):
                    continue
                self.known.add(parts)
                self.found.append(Found(describe(root, parts, now), snapshot.short, str(snapshot.guid)))
                if len(self.found) >= self.room:
                    break

    def is_match(self, entry: os.DirEntry[str]) -> bool:
        """Whether a file or folder has the text in its name, whatever the case and the way its accents are written."""
        if self.text not in fold(os.fsencode(entry.name).decode(errors="replace")):
            return False
        return entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)

    def walk_names(self, root: int) -> Iterator[tuple[tuple[bytes, ...], os.DirEntry[str]]]:
        """Every entry below a folder with the path of its folder. No link is followed, no other file system entered."""
        waiting: list[tuple[bytes, ...]] = [()]
        while waiting:
            above = waiting.pop()
            if time.monotonic() - self.reported > SECONDS_BETWEEN_REPORTS:
                self.reported = time.monotonic()
                self.report()
            try:
                with private_mount.open_beneath(root, above) as held:
                    folder = private_mount.reopen_for_reading(held, os.O_RDONLY | os.O_DIRECTORY)
            except (OSError, Refused):
                self.complete = False
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        yield above, entry
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append((*above, os.fsencode(entry.name)))
            except OSError:
                self.complete = False
            finally:
                os.close(folder)


def fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def exists(root: int, parts: tuple[bytes, ...]) -> bool:
    try:
        with private_mount.open_beneath(root, parts) as handle:
            mode = os.fstat(handle).st_mode
    except (OSError, Refused):
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def describe(root: int, parts: tuple[bytes, ...], now: int | None) -> listing.FolderEntry:
    """One entry of a snapshot under its whole path, compared with the folder of now."""
    with private_mount.open_beneath(root, parts[:-1]) as held, listing.open_current_folder(now, parts[:-1]) as current:
        entry = listing.entry_of(held, parts[-1], current)
    return listing.FolderEntry(names.encode_relative_path(parts), entry.kind, entry.size, entry.mtime, entry.now)


def check_request(text: str, after: str, room: int) -> None:
    """Raises Refused for what can be no part of a file's name, no guid, or too much."""
    if not text.strip() or len(text) > LONGEST_TEXT or "/" in text or "\0" in text:
        raise Refused(
            Reason(
                "search-text-invalid",
                "Type a part of the name: up to {count} letters, without a slash.",
                field="q",
                count=LONGEST_TEXT,
            )
        )
    if (after and not (after.isascii() and after.isdecimal() and len(after) <= 20)) or not 1 <= room <= MOST:
        raise Refused(Reason("search-position-invalid", "That is not a position in the search.", field="q"))


def search_names(dataset: str, text: str, after: str, room: int, send: Send) -> SearchResult:
    """Search the snapshots that are older than the one with the guid ``after``, newest first.
    Raises Refused, Failed."""
    current = listing.dataset_now(dataset)
    snapshots = sorted(list_snapshots.list_snapshots([dataset]), key=lambda snapshot: snapshot.txg, reverse=True)
    begin = next((at + 1 for at, one in enumerate(snapshots) if str(one.guid) == after), 0)
    with listing.open_live_folder(current) as now:
        return search_from(
            snapshots, begin, Search(fold(text.strip()), room, lambda: send({"searching": dataset})), now
        )


def search_from(snapshots: Sequence[Snapshot], begin: int, search: Search, now: int | None) -> SearchResult:
    """Search from that snapshot on, until time or room ends. At least one is read, so that every piece gets further."""
    until = time.monotonic() + SECONDS
    newer = snapshots[begin - 1].name if begin else ""
    at = begin
    while at < len(snapshots) and len(search.found) < search.room:
        # Nothing was written between this snapshot and the next newer one: the same files.
        if not at or snapshots[at - 1].written:
            if at > begin and time.monotonic() > until:
                break
            search.read_snapshot(snapshots[at], now, newer)
        at += 1
    full = len(search.found) >= search.room
    after = str(snapshots[at - 1].guid) if at < len(snapshots) and not full else ""
    return SearchResult(tuple(search.found), at, len(snapshots), after, full, search.complete)


class SearchNames(Request, tag="search-names"):
    """Files and folders by a part of their name, in the snapshots that are older than the guid ``after``."""

    dataset: str
    text: str
    after: str = ""
    room: int = MOST

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        check_request(self.text, self.after, self.room)

    def answer(self, exchange: Exchange) -> None:
        found = search_names(self.dataset, self.text, self.after, self.room, exchange.send)
        exchange.send(as_facts(found))
