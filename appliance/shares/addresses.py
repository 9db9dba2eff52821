"""Addresses of a share for each kind of computer, and the steps to use them. Pure functions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from appliance.message import Message
from appliance.shares.settings import ShareSetting


class AddressWay(msgspec.Struct, frozen=True):
    """What a person does on one kind of computer: ``address`` is to copy, ``steps`` say where to put it.

    ``by_number``: the same with the number of the box in place of its name; empty where no number is known.
    ``short``: the computers that take this address, where only one address for several kinds of them is
    shown; empty for all others.
    """

    computer: str
    address: str
    steps: tuple[str, ...]
    short: str = ""
    by_number: str = ""

    @property
    def is_address(self) -> bool:
        """Whether it is to open, and no command."""
        return not self.address.startswith("sudo ")


def name_of(setting: ShareSetting, protocol: str) -> str:
    """The name under which the folder is seen over SMB or AFP; empty where it is not shared like that."""
    shared = {"smb": setting.smb, "afp": setting.afp}.get(protocol)
    return shared.name if shared else ""


def shell_quoted(text: str) -> str:
    """For a shell: in quotes where it needs them."""
    return shlex.quote(text)


def folder_of(path: str) -> str:
    """Where to mount it on the other computer: ``/mnt/photos``."""
    return f"/mnt/{path.rstrip('/').rsplit('/', 1)[-1]}"


def smb_addresses(host: str, name: str) -> Iterator[AddressWay]:
    url = f"smb://{host}/{quote(name)}"
    yield AddressWay(
        "Windows",
        f"\\\\{host}\\{name}",
        (
            Message("Open File Explorer, type the address into the bar at the top, and press Enter."),
            Message("Sign in with the name and password of a user of this box. Let Windows remember them."),
            Message("To give it a letter: right-click “This PC”, “Map network drive”."),
        ),
        "Windows",
    )
    yield AddressWay(
        "Mac",
        url,
        (
            Message("In the Finder choose Go, “Connect to Server…”, and put the address there."),
            Message("Choose “Registered user” and sign in."),
        ),
        Message("Mac, phone, Linux"),
    )
    yield AddressWay(
        Message("iPhone and iPad"),
        url,
        (
            Message("In Files, on “Browse”, tap the three dots, then “Connect to Server”."),
            Message("Put the address there and sign in as registered user."),
        ),
    )
    yield AddressWay(
        "Android",
        url,
        (
            Message("Use a file manager that knows SMB, for example Material Files or CX File Explorer."),
            Message("Add a network place: server {host}, folder {name}.", host=host, name=name),
        ),
    )
    yield AddressWay(
        Message("Linux, on the desktop"),
        url,
        (
            Message("In Files (GNOME) choose “Other Locations”, in Dolphin (KDE) the line at the top."),
            Message("Put the address there."),
        ),
    )
    yield AddressWay(
        Message("Linux, in a terminal"),
        f"sudo mount -t cifs {shell_quoted(f'//{host}/{name}')} {shell_quoted(f'/mnt/{name}')} -o "
        "username=NAME,uid=$(id -u),gid=$(id -g)",
        (
            Message(
                "Create the mountpoint once: sudo mkdir -p {shell_quoted}. This needs the package cifs-utils.",
                shell_quoted=shell_quoted(f"/mnt/{name}"),
            ),
        ),
    )


def nfs_addresses(host: str, path: str) -> Iterator[AddressWay]:
    place = folder_of(path)
    source = shell_quoted(f"{host}:{path}")
    yield AddressWay(
        "Linux (NFS 4)",
        f"sudo mkdir -p {shell_quoted(place)} && sudo mount -t nfs -o vers=4.2 {source} {shell_quoted(place)}",
        (
            Message("It needs the package nfs-common (Debian, Ubuntu) or nfs-utils (Fedora)."),
            Message("At every start: {fstab_line} as a line of /etc/fstab.", fstab_line=fstab_line(host, path)),
        ),
    )
    yield AddressWay(
        "Linux (NFS 3)",
        f"sudo mkdir -p {shell_quoted(place)} && sudo mount -t nfs -o vers=3 {source} {shell_quoted(place)}",
        (Message("Only for what cannot do NFS 4."),),
    )
    mac = f"/Volumes/{place.removeprefix('/mnt/')}"
    yield AddressWay(
        Message("Mac, in a terminal"),
        f"sudo mkdir -p {shell_quoted(mac)} && sudo mount -t nfs -o vers=4,resvport {source} {shell_quoted(mac)}",
        (Message("On a Mac with macOS 10.15 or later, use a folder in your home folder instead of /Volumes."),),
    )
    yield AddressWay(
        Message("Mac, in the Finder"),
        f"nfs://{host}{quote(path)}",
        (Message("Choose Go, “Connect to Server…”, and put the address there."),),
        Message("Mac, media player"),
    )
    yield AddressWay(
        Message("Media players (Kodi, VLC)"),
        f"nfs://{host}{quote(path)}",
        (Message("Add a network place of the kind NFS."),),
    )


def fstab_line(host: str, path: str) -> str:
    """The line of fstab(5): white space in a path is written in octal."""
    place = folder_of(path)

    def plain(text: str) -> str:
        return text.replace("\\", "\\134").replace(" ", "\\040")

    return f"{host}:{plain(path)} {plain(place)} nfs4 defaults,_netdev,nofail 0 0"


def afp_addresses(host: str, name: str) -> Iterator[AddressWay]:
    yield AddressWay(
        Message("Mac with Mac OS X 10.4 to macOS 15"),
        f"afp://{host}/{quote(name)}",
        (
            Message("In the Finder choose Go, “Connect to Server…”, and put the address there."),
            Message(
                "A Mac with OS X 10.9 or later is better served by SMB; newer ones than macOS 15 may not "
                "know AFP any more."
            ),
        ),
        Message("Older Mac"),
    )


def share_addresses(
    setting: ShareSetting, protocol: str, *, host: str, path: str, number: str = ""
) -> tuple[AddressWay, ...]:
    """Every way to a folder over one protocol; ``host`` as the network knows this box, ``number`` its address in it
    (empty: not known), ``path`` where the folder is mounted."""
    named = ways_by(setting, protocol, host, path)
    if not number:
        return named
    numbered = ways_by(setting, protocol, number, path)
    return tuple(replace(way, by_number=other.address) for way, other in zip(named, numbered, strict=True))


def ways_by(setting: ShareSetting, protocol: str, host: str, path: str) -> tuple[AddressWay, ...]:
    """Every way to a folder with this name or number of the box."""
    if protocol == "nfs":
        return tuple(nfs_addresses(host, path)) if setting.nfs else ()
    name = name_of(setting, protocol)
    if not name:
        return ()
    return tuple((smb_addresses if protocol == "smb" else afp_addresses)(host, name))
