"""AFP through netatalk, for Macs too old for a good SMB: a settings file of Larder's own beside the package's.

netatalk 4.2 has no include, so a drop-in of its unit names the file. What the settings are for:

- ``valid shellcheck = no``: people here have no shell.
DHX2 asks PAM (``/etc/pam.d/netatalk``), which knows the password
  from ``/etc/shadow``; a locked account stays out.
- ``uams_dhx2.so`` alone: the password never crosses the network in the clear, and there are no guests.
- ``ea = samba`` keeps Finder's data where Samba's ``fruit:metadata = netatalk``, ``fruit:resource = file`` and
  ``streams_xattr:prefix = user.``, ``store_stream_type = no`` look for it (afp.conf(5), vfs_fruit(8)).
- ``hosts allow`` and an IPv4 socket: only the networks of a home; AFP is not made for anything wider.
- ``zeroconf = no``: Larder announces what it serves (``discovery.py``).

``preexec close`` would look after a missing file system, but every preexec fails in 4.2.3 (afpd loses its child's
status); so only what is mounted is written, and the file is written again before netatalk starts (``before_start.py``).
"""

from __future__ import annotations

import configparser
import os
import signal
import socket
import struct
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from appliance import command, names
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.message import Message
from appliance.shares.owned_file import OwnedFile
from appliance.shares.settings import Afp, Part, Protocol, wanted_shares
from appliance.shares.template import Template

CONFIG = Path("/etc/netatalk/larder.conf")
DROP_IN = Path("/etc/systemd/system/netatalk.service.d/larder.conf")
UNIT = "netatalk.service"
PORT = 548
SECONDS_TO_START = 60
NOBODY = "larder-nobody"
MIB = 2**20
# Private and link-local networks (RFC 1918, RFC 3927), and the box itself.
HOME = ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16")
GLOBAL = {
    "afp listen": "0.0.0.0",  # noqa: S104 - the networks are narrowed by "hosts allow"
    "uam list": "uams_dhx2.so",
    "valid shellcheck": "no",
    "zeroconf": "no",
    "spotlight": "no",
    "close vol": "yes",
}
VOLUME = {
    "volume name",
    "path",
    "valid users",
    "rolist",
    "ea",
    "file perm",
    "directory perm",
    "hosts allow",
    "time machine",
    "vol size limit",
}
TEMPLATE = Template(
    """\
[Global]
{% for key, value in globals.items() %}
{{ key }} = {{ value }}
{% endfor %}
{% for volume in volumes %}

[{{ volume.name }}]
volume name = {{ volume.name }}
path = {{ volume.path }}
valid users = {{ (volume.write + volume.read) | join(" ") or nobody }}
{% if volume.read %}
rolist = {{ volume.read | join(" ") }}
{% endif %}
ea = samba
file perm = 0660
directory perm = 2770
hosts allow = {{ home | join(" ") }}
{% if volume.time_machine %}
time machine = yes
vol size limit = {{ volume.time_machine }}
{% endif %}
{% endfor %}
"""
)


def wanted_volumes(facts: Facts) -> Iterator[tuple[Dataset, Afp]]:
    """The datasets that are to be served over AFP and are there, with their settings."""
    for dataset, part in wanted_shares(facts, "afp"):
        if isinstance(part, Afp) and dataset.mounted and not dataset.locked:
            yield dataset, part


def render_config(facts: Facts) -> str:
    """The text of the file for these datasets and the people who exist."""
    found = [
        {
            "name": part.name,
            "path": dataset.mountpoint,
            "write": [who for who in part.write if facts.lets_in(who)],
            "read": [who for who in part.read if facts.lets_in(who)],
            # Time Machine must find room for a whole backup: a limit is told in MiB, rounded down.
            "time_machine": max(part.time_machine // MIB, 1) if part.time_machine else 0,
        }
        for dataset, part in wanted_volumes(facts)
    ]
    return TEMPLATE.render(globals=GLOBAL, volumes=found, nobody=NOBODY, home=HOME)


def parse_config(text: str) -> configparser.RawConfigParser:
    """A file in netatalk's form. Raises Failed where it is none."""
    parser = configparser.RawConfigParser(
        delimiters=("=",), comment_prefixes=("#", ";"), strict=True, default_section="none at all"
    )
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise Failed(Message("netatalk did not accept these settings"), str(error)) from error
    return parser


def check_config(path: Path) -> None:
    """Whether netatalk would take this file, and whether it reads Larder's file at all.

    netatalk cannot check a file, and passes over what it does not know: so nothing else may be in it.
    """
    if not DROP_IN.exists():
        raise Failed(
            Message("netatalk on this box is set up by hand"),
            Message(
                "its unit does not name {config}. Larder leaves it alone. To hand it over, run Larder's "
                "installation with LARDER_TAKE=netatalk.",
                config=CONFIG,
            ),
        )
    text = path.read_text(encoding="utf-8")
    parser = parse_config(text)
    common = dict(parser.items("Global")) if parser.has_section("Global") else {}
    if common != GLOBAL or any(line.endswith("\\") for line in text.splitlines()):
        raise Failed(Message("netatalk's common settings are not those that Larder writes"))
    for name in parser.sections():
        if name == "Global":
            continue
        names.check_share_name(name)
        if unknown := set(parser[name]) - VOLUME:
            raise Failed(Message("netatalk does not know these settings"), ", ".join(sorted(unknown)))
        names.served_path(parser[name].get("path", ""))


def methods_in(said: bytes) -> tuple[str, ...]:
    """How a server lets people in, from its answer to FPGetSrvrInfo ("Apple Filing Protocol Reference")."""
    try:
        (at,) = struct.unpack_from(">H", said, 4)
        found, count, at = [], said[at], at + 1
        for _ in range(count):
            found.append(said[at + 1 : at + 1 + said[at]].decode("ascii", "replace"))
            at += 1 + said[at]
    except (struct.error, IndexError):
        return ()
    return tuple(found)


def machine_in(said: bytes) -> str:
    """What a server says it is, from the same answer: netatalk's name and version."""
    try:
        (at,) = struct.unpack_from(">H", said)
        return said[at + 1 : at + 1 + said[at]].decode("ascii", "replace")
    except (struct.error, IndexError):
        return ""


def server_information(host: str, port: int = PORT, timeout: float = 10) -> bytes:
    """What an AFP server tells before any login (FPGetSrvrInfo); empty where none answers."""
    try:
        with socket.create_connection((host, port), timeout) as line:
            line.settimeout(timeout)
            line.sendall(struct.pack(">BBHIII", 0, 3, 1, 0, 0, 0))
            answer = line.makefile("rb")
            length = struct.unpack(">BBHiII", answer.read(16))[4]
            return answer.read(min(length, 65536))
    except (OSError, struct.error):
        return b""


def login_methods(host: str = "127.0.0.1", port: int = PORT, timeout: float = 10) -> tuple[str, ...]:
    """The ways in that an AFP server offers; empty where none answers."""
    return methods_in(server_information(host, port, timeout))


class AfpServing(msgspec.Struct, frozen=True):
    """netatalk as ``serving.py`` wants it."""

    owned: OwnedFile
    name: Protocol = "afp"
    units: tuple[str, ...] = (UNIT,)

    def shares(self, facts: Facts) -> tuple[Share, ...]:
        return tuple(Share("afp", part.name, dataset.mountpoint) for dataset, part in wanted_volumes(facts))

    def render(self, facts: Facts) -> str:
        return render_config(facts)

    def against(self, dataset: Dataset, part: Part, facts: Facts) -> Iterator[Reason]:
        if isinstance(part, Afp) and not (*part.write, *part.read):
            yield Reason("share-without-users", "Choose at least one user who may use the folder.", field="people")

    def warnings(self, part: Part) -> Iterator[str]:
        yield from ()

    def why_not(self, paths: Collection[str] | None = None) -> str:
        return ""

    def take_up(self, shares: tuple[Share, ...]) -> None:
        """Start netatalk with the first volume, stop it with the last. A reload drops nobody."""
        if not shares:
            if is_running():
                command.run(["systemctl", "disable", "--now", UNIT], timeout=120)
            return
        if is_running():
            command.run(["systemctl", "reload", UNIT], timeout=60)
        else:
            command.run(["systemctl", "enable", "--now", UNIT], timeout=120)
        until = time.monotonic() + SECONDS_TO_START
        while "DHX2" not in login_methods():
            if time.monotonic() > until:
                raise Failed(Message("netatalk was started and does not answer on its port"))
            time.sleep(0.5)

    def served(self) -> frozenset[tuple[str, str]]:
        """The volumes that are served. afpd lists them to nobody before a login, and reads its file at every login: so
        they are those of the file while it answers."""
        up = is_running() and "DHX2" in login_methods()
        return frozenset((share.name, share.path) for share in self.configured()) if up else frozenset()

    def close(self, gone: Iterable[Share]) -> None:
        """End the sessions that may have a removed volume open: afpd (4.2.3) leaves them open and does not say which.

        Those end whose process stands in the folder or has something of it open; a Mac connects again by itself.
        """
        folders = tuple(share.path.rstrip("/") for share in gone)
        for process in session_processes() if folders else ():
            if any(is_inside(place, folders) for place in places_of(process)):
                try:
                    os.kill(int(process.name), signal.SIGTERM)
                except ProcessLookupError:
                    continue

    def configured(self) -> tuple[Share, ...]:
        try:
            parser = parse_config(self.owned.path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, Failed):
            return ()
        return tuple(Share("afp", name, parser[name].get("path", "")) for name in parser.sections() if name != "Global")


SERVING = AfpServing(OwnedFile(CONFIG, check_config))


def session_processes(proc: Path = Path("/proc")) -> Iterator[Path]:
    """The processes of afpd that serve somebody: those that run as a person, not as root."""
    for process in proc.iterdir():
        try:
            if process.name.isdigit() and (process / "comm").read_text().strip() == "afpd":
                uids = next(line for line in (process / "status").read_text().splitlines() if line.startswith("Uid:"))
                if int(uids.split()[2]) != 0:
                    yield process
        except (OSError, StopIteration, ValueError):
            continue


def places_of(process: Path) -> Iterator[str]:
    """Where a process stands and what it has open."""
    try:
        links = [process / "cwd", *(process / "fd").iterdir()]
    except OSError:
        return
    for link in links:
        try:
            yield str(link.readlink())
        except OSError:
            continue


def is_inside(place: str, folders: Iterable[str]) -> bool:
    return any(place == folder or place.startswith(f"{folder}/") for folder in folders)


def is_running() -> bool:
    said = command.run(["systemctl", "is-active", UNIT], timeout=30, accept=range(256))
    return said.stdout.strip() in {"active", "reloading"}
