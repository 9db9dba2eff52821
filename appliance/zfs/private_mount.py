"""Look into a snapshot without mounting it for anybody else.

Reading through ``.zfs`` would leave an automount behind for each snapshot, minutes long, and there may be thousands of
them. So a snapshot is mounted in a mount namespace of this process alone, opened, and let go of at once: what is held
is the descriptor, and with it, or with the process, everything ends. It works where ``.zfs`` is hidden, and where the
folder itself is mounted nowhere.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.system import paths

PLACE = paths.RUN / "looking"
CLONE_NEWNS = 0x00020000  # sched.h
# mount.h: read-only, no set-uid, no devices, no programs
SAFELY = 1 | 2 | 4 | 8
WRITABLE = SAFELY & ~1
MS_REC, MS_SLAVE, MNT_DETACH = 16384, 1 << 19, 2
WAY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_alone = [0]  # the process that has its own namespace


def libc_function(name: str, *arguments: object) -> None:
    """A function of the C library that Python has no name for. Raises OSError."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter_own_namespace() -> None:
    """Give this process a mount namespace of its own, once. It mounts nothing for others any more.

    What others unmount goes here too (MS_SLAVE): a job of hours would otherwise keep every folder busy that was mounted
    when it began, and none of them could be destroyed, nor its pool exported.
    """
    if _alone[0] != os.getpid():
        libc_function("unshare", CLONE_NEWNS)
        libc_function("mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_SLAVE), None)
        _alone[0] = os.getpid()


@contextmanager
def root_of(snapshot: str, flags: int = SAFELY) -> Iterator[int]:
    """A descriptor of a snapshot's top folder. Raises Failed where ZFS does not let it be read (locked, destroyed).

    Also that of a dataset that is mounted nowhere; with WRITABLE its files can be written."""
    enter_own_namespace()
    PLACE.mkdir(mode=0o700, exist_ok=True)
    place = os.fsencode(PLACE)
    try:
        libc_function("mount", snapshot.encode(), place, b"zfs", ctypes.c_ulong(flags), None)
        try:
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            libc_function("umount2", place, MNT_DETACH)
    except OSError as error:
        raise Failed(Message("{snapshot} cannot be looked into", snapshot=snapshot), error.strerror or "") from error
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_beneath(root: int, parts: tuple[bytes, ...]) -> Iterator[int]:
    """A descriptor (O_PATH) of what lies that way down, or FileNotFoundError. A link is never followed: Refused.

    Each name is opened once, relative to its folder, as openat2(2) does with RESOLVE_BENEATH, NO_SYMLINKS and NO_XDEV.
    The last may be a link: it is held itself, not what it points to.
    """
    device = os.fstat(root).st_dev
    handle = os.open(".", WAY | os.O_DIRECTORY, dir_fd=root)
    try:
        for at, part in enumerate(parts):
            last = at == len(parts) - 1
            try:
                below = os.open(part, WAY | (0 if last else os.O_DIRECTORY), dir_fd=handle)
            except NotADirectoryError as error:
                raise Refused(
                    Reason("path-through-link", "There is a link or a file on this path. Larder follows no links.")
                ) from error
            os.close(handle)
            handle = below
            if os.fstat(handle).st_dev != device:
                raise Refused(
                    Reason(
                        "path-in-other-dataset", "That is another folder with its own snapshots. Open its snapshots."
                    )
                )
        yield handle
    finally:
        os.close(handle)


def reopen_for_reading(handle: int, flags: int) -> int:
    """What an O_PATH descriptor holds, opened for reading: through /proc, so nothing can be swapped in between."""
    return os.open(f"/proc/self/fd/{handle}", flags | os.O_NONBLOCK | os.O_CLOEXEC)
