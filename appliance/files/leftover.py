"""Scratch folders among the files of users, under a name that anybody there may give to something of their own."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from appliance.errors import Failed
from appliance.formatting import printable_text
from appliance.message import Message

MODE = 0o700
# Of the scratch folders of imports and restores. What else Larder names like that holds files for users.
SCRATCH = re.compile(r"\.larder-(importing|restoring-[0-9a-f]{16})")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def scratch_folder(name: bytes, folder: int) -> Iterator[int]:
    """A descriptor of a new, empty folder that nobody but root may enter; it is removed afterwards.

    What an earlier run left under that name is removed before.
    Raises Failed where something else has the name, OSError.
    """
    remove_leftover(name, folder)
    os.mkdir(name, MODE, dir_fd=folder)
    handle = os.open(name, FOLDER, dir_fd=folder)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():
            raise in_the_way(name)  # put there meanwhile
        os.fchmod(handle, found.st_mode & (stat.S_ISGID | stat.S_ISVTX) | MODE)  # an inherited access list may say less
        yield handle
    finally:
        os.close(handle)
        with suppress(OSError, Failed):
            remove_leftover(name, folder)


def remove_leftover(name: bytes, folder: int) -> None:
    """Remove what an earlier run left under that name in ``folder``, with all that is in it; links are not followed.

    It is Larder's where it is a folder of root's own that nobody else may enter, in the same dataset.
    Everything else stays: Failed, with its name. Raises OSError.
    """
    try:
        handle = os.open(name, FOLDER, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:  # a file or a link, or it cannot be looked at
        raise in_the_way(name) from error
    try:
        if not is_own(handle, folder):
            raise in_the_way(name)
        # By the descriptor that was looked at: whoever may write in the folder could put
        # another in its place meanwhile.
        with os.scandir(handle) as entries:
            inside = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
        for entry, is_folder in inside:
            if is_folder:
                shutil.rmtree(entry, dir_fd=handle)
            else:
                os.unlink(entry, dir_fd=handle)
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=folder)


def is_own(handle: int, folder: int) -> bool:
    """Whether an open folder is as ``scratch_folder`` makes it.
    The owner alone says nothing: folders of users who may no longer change them are given to root."""
    found = os.fstat(handle)
    return found.st_uid == os.geteuid() and is_private(found) and found.st_dev == os.fstat(folder).st_dev


def is_private(found: os.stat_result) -> bool:
    """Whether nobody but its owner may enter it; the set-gid bit may have been inherited."""
    return found.st_mode & 0o777 == MODE


def is_scratch(name: str, found: os.stat_result) -> bool:
    """Whether a folder of that name is a scratch folder that may be in use: root's own, and
    closed to everybody else."""
    is_folder_of_root = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_folder_of_root and is_private(found) and SCRATCH.fullmatch(name) is not None


def in_the_way(name: bytes) -> Failed:
    return Failed(
        Message(
            "{name} exists already, and it is not certain that Larder made it. Rename or remove it, then start again",
            name=printable_text(name.decode(errors="replace")),
        )
    )
