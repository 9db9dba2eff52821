"""The one door to libzfs_core: bytes in, errors of our own tree out.

The library comes from Debian (``python3-pyzfs``) and is loaded at the first call, so that everything else of Larder can
be imported where there is none.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from appliance.errors import Failed, LarderError
from appliance.formatting import names_text
from appliance.message import Message, join_messages

# What goes wrong, by the name of the library's exception (``libzfs_core/exceptions.py``, OpenZFS
# 2.3), as a person reads it.
SAID = {
    "PoolNotFound": Message("The pool is not there."),
    "CheckpointExists": Message("The pool has a checkpoint already. Discard it first; a pool keeps only one."),
    "CheckpointNotFound": Message("The pool has no checkpoint."),
    "CheckpointDiscarding": Message("The pool is still discarding its last checkpoint. Wait until that has ended."),
    "DeviceRemovalRunning": Message("A disk is being removed from the pool. Wait until that has ended."),
    "DeviceTooBig": Message("A disk group of the pool is too large for a checkpoint."),
    "RaidzExpansionRunning": Message("The pool is being expanded. Wait until that has ended."),
    "NoSpace": Message("The pool has no space left for it."),
    "ReadOnlyPool": Message("The pool can only be read."),
    "SnapshotExists": Message("A snapshot of this name is there already."),
    "SnapshotNotFound": Message("The snapshot is not there."),
    "SnapshotIsHeld": Message("It is protected, or somebody is reading from it. Release it first."),
    "SnapshotIsCloned": Message("A clone is made from it."),
    "FilesystemNotFound": Message("The folder is not there."),
    "DuplicateSnapshots": Message("The same folder was named twice."),
    "HoldExists": Message("It is held under this name already."),
    "BookmarkNotSupported": Message(
        "The pool cannot keep bookmarks (feature@bookmarks). Upgrade the pool on its page first."
    ),
    "DatasetBusy": Message("It is in use at this moment. Try again later."),
    "SuspendedPool": Message("The pool has stopped because its disks do not answer."),
    "ZIOError": Message("A disk of the pool could not be read or written (I/O error). Look at the pool's page."),
    "BookmarkExists": Message("A bookmark of this name is there already."),
    "QuotaExceeded": Message("The limit of snapshots is reached (snapshot_limit)."),
    "SnapshotNotLatest": Message("Newer snapshots are in the way."),
}


def load_library() -> Any:
    """The binding. Raises Failed where it is not installed or does not load."""
    try:
        return importlib.import_module("libzfs_core")
    except (ImportError, OSError) as error:
        raise Failed(
            Message("ZFS's own library (python3-pyzfs) is not installed or does not load"), str(error)
        ) from error


def call_library(name: str, what: str, *arguments: object) -> Any:
    """Call one function of the library. Raises Failed with a sentence, ``what`` being what was tried."""
    loaded = load_library()
    function: Callable[..., Any] | None = getattr(loaded, name, None)
    if function is None:
        raise Failed(what, Message("This version of ZFS's library has no {name}.", name=name))
    try:
        return function(*arguments)
    except NotImplementedError as error:
        raise Failed(what, Message("This version of ZFS's library has no {name}.", name=name)) from error
    except LarderError:
        raise
    except Exception as error:
        # Every error of the library derives from ZFSError; its class says which. One about many holds each.
        raise Failed(what, error_text(single_errors(error)[0])) from error


def take_checkpoint(pool: str) -> None:
    """Remember the pool's state of now. Raises Failed."""
    call_library("lzc_pool_checkpoint", Message("The checkpoint of {pool} was not taken", pool=pool), pool.encode())


def discard_checkpoint(pool: str) -> None:
    """Let the remembered state go; the kernel frees its space in the background. Raises Failed."""
    call_library(
        "lzc_pool_checkpoint_discard", Message("The checkpoint of {pool} was not discarded", pool=pool), pool.encode()
    )


# --- snapshots ------------------------------------------------------------------------------------------------
MOST_NAMED = 5
BATCH = 256  # snapshots a call: one transaction group's worth, and the person can stop between two of them


class Left(msgspec.Struct, frozen=True):
    """A snapshot that ZFS would not destroy, and why, in words."""

    name: str
    why: str


def explain_left(left: Sequence[Left]) -> str:
    """The first with why each is there, and how many more there are."""
    return names_text([join_messages([one.name, one.why], ": ") for one in left], MOST_NAMED, "; ")


def take_snapshots(names: Iterable[str], properties: Mapping[str, str]) -> None:
    """Take all of these (``dataset@name``, one pool) in one transaction: all or none.
    Raises Failed with the reasons."""
    if left := try_snapshots(list(names), properties):
        raise Failed(Message("No snapshot was taken"), explain_left(left))


def take_most_snapshots(names: Iterable[str], properties: Mapping[str, str]) -> tuple[Left, ...]:
    """Take these in one transaction, without those that ZFS refuses, which are told.
    Raises Failed where none can be."""
    wanted, left = list(names), []
    while wanted and (found := try_snapshots(wanted, properties)):
        left += found
        out = {one.name for one in found}
        wanted = [name for name in wanted if name not in out]
    return tuple(left)


def try_snapshots(wanted: list[str], properties: Mapping[str, str]) -> list[Left]:
    """One call of ``lzc_snapshot``; empty where all were taken, else the ones in the way and none was.
    Raises Failed."""
    props = {key.encode(): value.encode() for key, value in properties.items()}
    try:
        load_library().lzc_snapshot([name.encode() for name in wanted], props)
    except LarderError:
        raise
    except Exception as error:
        if found := match_errors(error, wanted):
            return found
        raise Failed(Message("No snapshot was taken"), error_text(single_errors(error)[0])) from error
    return []


def match_errors(error: BaseException, wanted: Iterable[str]) -> list[Left]:
    """Which of those wanted the errors of a call are about, and why."""
    about = set(wanted)
    found = {}
    for one in single_errors(error):
        name = getattr(one, "name", None)
        text = name.decode(errors="replace") if isinstance(name, bytes) else ""
        if text in about:
            found[text] = SAID.get(type(one).__name__, str(one))
    return [Left(name, why) for name, why in found.items()]


def single_errors(error: BaseException) -> list[BaseException]:
    """The single errors of a call about many (``MultipleOperationsFailure.errors``), or the error itself."""
    return list(getattr(error, "errors", None) or [error])


def error_text(error: BaseException) -> str:
    """One error as a person reads it."""
    return SAID.get(type(error).__name__, str(error) or type(error).__name__)


def destroy_snapshots(
    names: Iterable[str], before_batch: Callable[[int], None] = lambda _done: None
) -> tuple[Left, ...]:
    """Destroy these (one pool), batch by batch; those that ZFS refuses are left out and told. Already gone is fine.

    A call is all or nothing (``lzc_destroy_snaps``, libzfs_core.h): it fails with the list of those in the way, and is
    then made again without them. ``before_batch`` gets how many are behind it, and may raise to stop there.
    """
    wanted = [name.encode() for name in names]
    left: list[Left] = []
    for start in range(0, len(wanted), BATCH):
        before_batch(start)
        batch = wanted[start : start + BATCH]
        while batch:
            offenders = try_destroy(batch)
            if not offenders:
                break
            left += offenders
            out = {one.name.encode() for one in offenders}
            batch = [name for name in batch if name not in out]
    return tuple(left)


def destroy_all_or_none(names: Iterable[str]) -> tuple[Left, ...]:
    """Destroy all of these (one pool) in one call, or none: then the ones in the way are told. Already gone is fine."""
    wanted = [name.encode() for name in names]
    return tuple(try_destroy(wanted)) if wanted else ()


def try_destroy(batch: list[bytes]) -> list[Left]:
    """Destroy the batch; the ones that kept it from happening, empty where all are gone. Raises Failed."""
    try:
        load_library().lzc_destroy_snaps(batch, False)
    except LarderError:
        raise
    except Exception as error:
        if found := match_errors(error, [name.decode() for name in batch]):
            return found
        raise Failed(Message("The snapshots were not destroyed"), error_text(single_errors(error)[0])) from error
    return []


def hold_snapshot(name: str, tag: str) -> None:
    """Keep a snapshot from being destroyed until it is released.
    Raises Failed (also where the tag is there already)."""
    missing = call_library("lzc_hold", Message("{name} was not held", name=name), {name.encode(): tag.encode()})
    if missing:
        raise Failed(Message("{name} was not held", name=name), Message("The snapshot is not there."))


def release_hold(name: str, tag: str) -> None:
    """Let go of a hold. Raises Failed where there was none."""
    missing = call_library(
        "lzc_release", Message("{name} was not released", name=name), {name.encode(): [tag.encode()]}
    )
    if missing:
        raise Failed(Message("{name} was not released", name=name), Message("There is no such hold."))


def read_holds(name: str) -> dict[str, int]:
    """The holds of a snapshot: tag to when it was set, in seconds since 1970."""
    found = call_library("lzc_get_holds", Message("The holds of {name} could not be read", name=name), name.encode())
    return {tag.decode(errors="replace"): int(at) for tag, at in found.items()}


def create_bookmark(name: str, snapshot_name: str) -> None:
    """Remember the snapshot's moment as ``dataset#name`` for incremental sending; it keeps no data."""
    call_library("lzc_bookmark", Message("{name} was not made", name=name), {name.encode(): snapshot_name.encode()})


def create_bookmarks(snapshots: Mapping[str, str]) -> None:
    """The same for many at once, each ``dataset#name`` with its snapshot: all or none (one pool). Raises Failed."""
    if not snapshots:
        return
    wanted = {name.encode(): of.encode() for name, of in snapshots.items()}
    try:
        call_library("lzc_bookmark", Message("The bookmarks were not made"), wanted)
    except Failed as failed:
        # Where ZFS does not say which of several failed, pyzfs looks for one called None, and the reason is lost.
        if len(wanted) == 1 or not isinstance(failed.__cause__, KeyError):
            raise
        create_each_bookmark(snapshots)


def create_each_bookmark(snapshots: Mapping[str, str]) -> None:
    """Make them one at a time, so that ZFS says which fails and why: then the others are taken back. Raises Failed."""
    made: list[str] = []
    try:
        for name, of in snapshots.items():
            create_bookmark(name, of)
            made.append(name)
    except Failed:
        with contextlib.suppress(Failed):  # why one was not made is what has to be told
            destroy_bookmarks(made)
        raise


def newer_bookmarks(dataset: str, txg: int) -> list[str]:
    """The bookmarks of a dataset that were made of a later moment: a rollback fails while they are there."""
    found = call_library(
        "lzc_get_bookmarks", Message("The bookmarks could not be read"), dataset.encode(), [b"createtxg"]
    )
    return sorted(f"{dataset}#{name.decode()}" for name, props in found.items() if props[b"createtxg"][b"value"] > txg)


def destroy_bookmark(name: str) -> None:
    """Let a bookmark go; one that has gone is fine. Raises Failed."""
    call_library("lzc_destroy_bookmarks", Message("The bookmark {name} was not destroyed", name=name), [name.encode()])


def destroy_bookmarks(names: Iterable[str]) -> None:
    """The same for many at once (one pool). Raises Failed."""
    if wanted := [name.encode() for name in names]:
        call_library("lzc_destroy_bookmarks", Message("The bookmarks were not destroyed"), wanted)


def range_space(first: str, last: str) -> int:
    """Bytes that come back when every snapshot from ``first`` to ``last`` of one dataset goes."""
    return int(
        call_library("lzc_snaprange_space", Message("The space could not be calculated"), first.encode(), last.encode())
    )


def rollback_to(dataset: str, snapshot_name: str) -> None:
    """Put a dataset back to its latest snapshot, which has to be this one. Raises Failed."""
    call_library(
        "lzc_rollback_to",
        Message("{dataset} was not rolled back", dataset=dataset),
        dataset.encode(),
        snapshot_name.encode(),
    )
