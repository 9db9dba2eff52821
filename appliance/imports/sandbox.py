"""What rsync can reach while it talks to another NAS: the program itself, the folder, the key of
this import, and the network.

The other NAS decides what rsync reads, and rsync has had holes that let a hostile server write outside of its folder.
It has to run as root, since files may belong to several users. So it runs in a root folder of its own that has nothing
of the box but ``/usr``, some files of ``/etc`` without secrets, and the one folder, with six capabilities and no
processes but its own. The mounts are made in the mount namespace of this request alone, and end with it. What the kind
of source needs (a key, a password, the mounted share) is put in by ``furnish``.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from appliance.errors import Failed
from appliance.message import Message
from appliance.system import paths
from appliance.zfs import private_mount

PLACE = paths.RUN / "importing"
FOLDER = "/folder"  # in there: the folder that is copied into
# mount.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
ETC = ("passwd", "group", "nsswitch.conf", "hosts", "resolv.conf", "host.conf", "gai.conf", "ld.so.cache")
DEVICES = ("null", "urandom", "random")
LINKS = ("bin", "sbin", "lib", "lib64")  # into /usr on Debian
AVAHI = Path("/run/avahi-daemon")  # names that end in .local
# chown, fowner: owners. dac_override: folders of all. set*: ssh runs as larder-ssh.
# Neither mknod, setfcap nor sys_admin.
CAPABILITIES = ("chown", "dac_override", "fowner", "setuid", "setgid", "setpcap")


@contextmanager
def enter(handle: int, furnish: Callable[[Path], None], *, writable: bool) -> Iterator[list[str]]:
    """The words that run a command in there, with the folder that ``open_folder`` has opened. Raises Failed."""
    private_mount.enter_own_namespace()
    PLACE.mkdir(mode=0o700, exist_ok=True)
    try:
        mount(b"tmpfs", PLACE, MS_NOSUID | MS_NODEV, kind=b"tmpfs", data=b"mode=755,size=16m")
    except OSError as error:
        raise Failed(Message("A place for the import could not be made"), error.strerror or "") from error
    try:
        fill(handle, furnish, writable=writable)
        yield [
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--ipc",
            f"--root={PLACE}",
            "--wd=/",
            "--",
            "setpriv",
            f"--bounding-set=-all,{','.join(f'+{one}' for one in CAPABILITIES)}",
            "--inh-caps=-all",
            "--clear-groups",
            "--no-new-privs",
            "--",
        ]
    except OSError as error:
        raise Failed(Message("A place for the import could not be made"), error.strerror or "") from error
    finally:
        with suppress(OSError):
            private_mount.libc_function("umount2", os.fsencode(PLACE), private_mount.MNT_DETACH)


def fill(handle: int, furnish: Callable[[Path], None], *, writable: bool) -> None:
    for name in ("etc", "dev", "run"):
        (PLACE / name).mkdir(mode=0o755)
        (PLACE / name).chmod(0o755)
    bind("/usr", PLACE / "usr", MS_RDONLY | MS_NOSUID | MS_NODEV)
    for name in LINKS:
        if Path("/", name).is_symlink():
            (PLACE / name).symlink_to(f"usr/{name}")
    for name in ETC:
        with suppress(FileNotFoundError):
            (PLACE / "etc" / name).write_bytes(Path("/etc", name).read_bytes())
            (PLACE / "etc" / name).chmod(0o644)
    for name in DEVICES:
        bind(f"/dev/{name}", PLACE / "dev" / name, MS_NOSUID | MS_NOEXEC, file=True)
    if AVAHI.is_dir():
        bind(AVAHI, PLACE / str(AVAHI)[1:], MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    furnish(PLACE)
    only_read = 0 if writable else MS_RDONLY
    # Through the descriptor, so whoever may write above the folder cannot put another one in its place.
    # Not recursively: what is mounted below it is another folder.
    bind(f"/proc/self/fd/{handle}/.", PLACE / FOLDER[1:], only_read | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount(b"none", PLACE, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, data=b"mode=755,size=16m")


def make_folder(place: Path) -> None:
    """Make a folder with those above it, which everybody in there may enter whatever the umask."""
    for one in (*reversed(place.relative_to(PLACE).parents), place.relative_to(PLACE)):
        with suppress(FileExistsError):
            (PLACE / one).mkdir()
            (PLACE / one).chmod(0o755)


def bind(source: str | Path, target: Path, flags: int, *, file: bool = False) -> None:
    """Show ``source`` at ``target``, where the flags hold. Raises OSError."""
    if file:
        target.touch()
    else:
        make_folder(target)
    mount(os.fsencode(source), target, MS_BIND)
    mount(b"none", target, MS_REMOUNT | MS_BIND | flags)


def mount(source: bytes, target: Path, flags: int, *, kind: bytes | None = None, data: bytes | None = None) -> None:
    private_mount.libc_function("mount", source, os.fsencode(target), kind, ctypes.c_ulong(flags), data)


def shown(argv: Sequence[str]) -> list[str]:
    """A command as pages show it, without the words that confine it."""
    return list(argv[argv.index("rsync") :]) if "rsync" in argv else list(argv)
