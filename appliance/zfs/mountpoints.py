"""The folder at a mountpoint, reached by descriptor: who may write above it can replace it by a link at any moment."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from appliance import command
from appliance.errors import Failed, Refused
from appliance.files import traversal
from appliance.message import Message
from appliance.operation import Step, Work
from appliance.system import paths
from appliance.zfs import pool_sync, private_mount


class Blocked(Failed):
    """What stands at the place of a folder, or on the way there, keeps it from being mounted: a
    link, a file, other files."""


@contextmanager
def hold_folder(place: str, *, make: bool = False) -> Iterator[tuple[int, int]]:
    """Descriptors of the folder at a place and of the one it lies in, reached without any symbolic link below the
    folder of all pools. ``make``: what is missing on the way is made, and removed again where an error goes through
    here. Raises Blocked, FileNotFoundError."""
    start = paths.POOLS if Path(place).is_relative_to(paths.POOLS) else Path("/")
    made: list[tuple[int, str]] = []
    with ExitStack() as stack:
        try:
            handles = [os.open(start, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
        except OSError as error:
            raise Failed(
                Message("{start}, where pools are mounted, cannot be reached", start=start), error.strerror or ""
            ) from error
        stack.callback(os.close, handles[0])
        try:
            for part in Path(place).relative_to(start).parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=handles[-1])
                        made.append((handles[-1], part))
                handle = os.open(part, traversal.BOUND | os.O_DIRECTORY, dir_fd=handles[-1])
                stack.callback(os.close, handle)
                handles.append(handle)
            yield handles[-1], handles[max(len(handles) - 2, 0)]
        except BaseException as error:
            for folder, part in reversed(made):
                with suppress(OSError):
                    os.rmdir(part, dir_fd=folder)
            if isinstance(error, NotADirectoryError):
                raise Blocked(
                    Message(
                        "A symbolic link or a file is at {place} or on the way there. Larder follows no links",
                        place=place,
                    )
                ) from error
            if make and isinstance(error, FileNotFoundError):
                raise Blocked(
                    Message("The folder at {place} was removed while it was being made", place=place)
                ) from error
            if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                raise Failed(Message("{place} cannot be reached", place=place), error.strerror or "") from error
            raise


def begins_mount(handle: int, above: int) -> bool:
    """Whether something is mounted at a folder: it is of another file system than the one it lies in."""
    return os.fstat(handle).st_dev != os.fstat(above).st_dev


def holds_files(handle: int) -> bool:
    opened = private_mount.reopen_for_reading(handle, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(opened) as entries:
            return next(entries, None) is not None
    finally:
        os.close(opened)


def refuse_taken(place: str) -> None:
    """Raise Blocked where something is at the place of a folder that is about to be made:
    only an empty folder may be."""
    try:
        with hold_folder(place) as (handle, above):
            if begins_mount(handle, above) or holds_files(handle):
                raise Blocked(
                    Message(
                        "There is something at {place} already. Choose another name, or move it away first", place=place
                    )
                )
    except FileNotFoundError:
        pass


def is_mounted_at(place: str, name: str) -> bool:
    """Whether that very dataset begins at that very place, reached without following links."""
    try:
        with hold_folder(place) as (handle, above):
            return traversal.dataset_of(handle) == name and begins_mount(handle, above)
    except (OSError, Failed):
        return False


def remove_folder(place: str) -> None:
    """Remove the empty folder that a dataset left behind at its former place; anything else stays."""
    with suppress(OSError, Failed), hold_folder(place) as (_handle, above):
        os.rmdir(Path(place).name, dir_fd=above)


def mounted_places() -> Iterator[tuple[str, str]]:
    """What of ZFS is mounted where, as the kernel says: the dataset and the folder."""
    for line in traversal.read_mounts():
        before, _, after = line.partition(" - ")
        if after.startswith("zfs "):
            place = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
            yield after.split(" ")[1].replace("\\040", " "), place


@contextmanager
def top_of(name: str, place: str) -> Iterator[int]:
    """A descriptor of the top folder of a dataset that is mounted there. Raises Refused, Failed."""
    try:
        with hold_folder(place) as (handle, _above):
            traversal.refuse_unless_of(handle, name)
            yield handle
    except FileNotFoundError as error:
        raise Refused(traversal.not_at_mountpoint(name)) from error


def top_step(step: str, title: str, argv: Sequence[str], name: str, place: str) -> Step:
    """A step that is one command about the top folder of a mounted dataset, which it is given by descriptor.
    It is on the disks when the step ends."""

    def act(_work: Work) -> None:
        with top_of(name, place) as handle:
            command.run([*argv, "--", f"/proc/self/fd/{handle}/."], timeout=60, holding=handle)
        pool_sync.sync_pool_of(name)

    return Step(step, title, shlex.join([*argv, "--", place]), act, (place,))
