"""Read who is connected and which files are open, from Samba, the NFS server and netatalk's processes.

- SMB: ``smbstatus --json`` (Samba 4.22): ``sessions``, ``tcons`` and ``open_files``, joined by process.
- NFS: ``/proc/fs/nfsd/clients/N`` (kernel 5.3 and later, nfsd(7)) knows clients of version 4.
Version 3 has no sessions.
- AFP: netatalk serves each connection by a process of its own, which runs as the person; it tells of open files nothing
  but what the process holds. ``ss`` knows from where it comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from appliance import command
from appliance.errors import Failed
from appliance.facts.sharing import Session
from appliance.message import Message
from appliance.request import Request
from appliance.shares import afp
from appliance.shares.settings import PROTOCOLS, Protocol
from appliance.system import accounts

NFS_CLIENTS = Path("/proc/fs/nfsd/clients")
# A client that has been silent for longer than its lease. The server keeps what it had open for a day or
# longer, until somebody else needs that (Linux 5.19, NFSD4_COURTESY and NFSD4_EXPIRABLE). It has left:
# switched off, or gone elsewhere.
NFS_LEFT = {"courtesy", "expirable"}
MOST_FILES = 20  # of one connection
MOST = 500  # connections
LONGEST = 300
AFP_PEER = re.compile(r'\s(?P<peer>\S+)\s+users:\(\("afpd",pid=(?P<pid>\d+)')


class Connection(msgspec.Struct, frozen=True):
    """One client. ``id`` names it to its server: a process (SMB, AFP) or the kernel's number (NFS)."""

    protocol: Protocol
    id: str
    user: str  # empty where the protocol knows none
    machine: str
    shares: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    more_files: int = 0
    secured: str = ""  # encrypted, signed; empty where that is not told

    @property
    def name(self) -> str:
        return self.user or self.machine

    @property
    def key(self) -> str:
        return f"{self.protocol}-{self.id}"

    @property
    def identity(self) -> tuple[str, str, str]:
        """What identifies it whatever it has open. Servers reuse numbers, so the number alone does not."""
        return self.key, self.user, self.machine


def tidy_text(text: object) -> str:
    """The name of a client or file, cut to ``LONGEST``, with invisible characters replaced."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in str(text)[:LONGEST])


def json_table(answer: object, name: str) -> list[dict[str, Any]]:
    found = answer.get(name) if isinstance(answer, dict) else None
    return [one for one in found.values() if isinstance(one, dict)] if isinstance(found, dict) else []


def process_of(entry: dict[str, Any]) -> str:
    server = entry.get("server_id")
    found = str(server.get("pid", "")) if isinstance(server, dict) else ""
    return found if found.isdigit() else ""


def secured_of(session: dict[str, Any]) -> str:
    """How a session is kept from others: Samba tells ``degree`` none, anonymous, partial or full for each."""
    for kind, words in (("encryption", Message("encrypted")), ("signing", Message("signed"))):
        told = session.get(kind)
        if isinstance(told, dict) and told.get("degree") in {"partial", "full"}:
            return words
    return Message("neither signed nor encrypted") if "signing" in session else ""


def smb_connections(answer: object) -> Iterator[Connection]:
    """From ``smbstatus --json``."""
    shares: dict[str, set[str]] = {}
    files: dict[str, set[str]] = {}
    for one in json_table(answer, "tcons"):
        if one.get("service") not in {None, "IPC$"}:
            shares.setdefault(process_of(one), set()).add(tidy_text(one["service"]))
    for one in json_table(answer, "open_files"):
        if (name := str(one.get("filename", ""))) not in {"", "."}:
            for opened in json_table(one, "opens"):
                files.setdefault(process_of(opened), set()).add(tidy_text(name))
    seen = set()
    for one in json_table(answer, "sessions"):
        process = process_of(one)
        if not process or process in seen:
            continue
        seen.add(process)
        held = sorted(files.get(process, ()))
        yield Connection(
            "smb",
            process,
            tidy_text(one.get("username", "")),
            tidy_text(one.get("remote_machine") or one.get("hostname", "")),
            tuple(sorted(shares.get(process, ()))),
            tuple(held[:MOST_FILES]),
            max(len(held) - MOST_FILES, 0),
            secured_of(one),
        )


def nfs_connections(clients: Path = NFS_CLIENTS) -> Iterator[Connection]:
    """Clients of version 4 that are there, as the kernel lists them;
    ``info`` and ``states`` are lines of ``key: value``."""
    try:
        found = sorted((one for one in clients.iterdir() if one.name.isdigit()), key=lambda one: int(one.name))
    except OSError:
        return
    for client in found:
        try:
            info = dict(line.split(": ", 1) for line in (client / "info").read_text().splitlines() if ": " in line)
            states = (client / "states").read_text(errors="replace")
        except OSError:
            continue  # it has just gone
        if info.get("status", "").strip() in NFS_LEFT:
            continue
        held = sorted({tidy_text(name) for name in re.findall(r'type: open,.*filename: "([^"]*)"', states)})
        machine = info.get("address", "").strip('" ').rpartition(":")[0].strip("[]")
        called = info.get("name", "").strip('" ')
        yield Connection(
            "nfs",
            client.name,
            "",
            tidy_text(f"{machine} ({called})" if called else machine),
            (),
            tuple(held[:MOST_FILES]),
            max(len(held) - MOST_FILES, 0),
        )


def afp_connections(said: str, people: dict[int, str], proc: Path = Path("/proc")) -> Iterator[Connection]:
    """netatalk's processes that serve somebody; ``said`` is what ``ss -Htnp`` tells of its port."""
    peers = {found["pid"]: found["peer"].rpartition(":")[0].strip("[]") for found in AFP_PEER.finditer(said)}
    volumes = {share.path.rstrip("/"): share.name for share in afp.SERVING.configured()}
    for process in afp.session_processes(proc):
        try:
            uid = process.joinpath("status").read_text().split("Uid:")[1].split()[1]
        except (OSError, IndexError):
            continue
        places = set(afp.places_of(process))
        held = sorted(tidy_text(place) for place in places if any(place.startswith(f"{path}/") for path in volumes))
        yield Connection(
            "afp",
            process.name,
            people.get(int(uid), f"user {uid}"),
            tidy_text(peers.get(process.name, "")),
            tuple(sorted(name for path, name in volumes.items() if any(afp.is_inside(one, (path,)) for one in places))),
            tuple(held[:MOST_FILES]),
            max(len(held) - MOST_FILES, 0),
        )


def of_smb() -> Iterator[Connection]:
    try:
        answer = json.loads(command.run(["smbstatus", "--json"], timeout=30, accept=range(256)).stdout)
    except (Failed, ValueError):
        return
    yield from smb_connections(answer)


def of_afp() -> Iterator[Connection]:
    if not any(True for _process in afp.session_processes()):
        return
    try:
        said = command.run(["ss", "-Htnp", "state", "established", f"( sport = :{afp.PORT} )"], timeout=30).stdout
    except Failed:
        said = ""
    yield from afp_connections(said, {account.uid: account.name for account in accounts.read_accounts()})


def read_connections(protocols: Iterable[Protocol] = PROTOCOLS) -> tuple[Connection, ...]:
    """Everybody, now. Only root may ask. A server that does not run has nobody."""
    ways = {"smb": of_smb, "nfs": lambda: nfs_connections(), "afp": of_afp}
    return tuple(one for protocol in protocols for one in ways[protocol]())[:MOST]


def read_sessions() -> tuple[Session, ...]:
    """Who has which share open, once each. Clients of NFS are not told by share."""
    found = {
        Session(one.user or "somebody", one.machine, share)
        for one in read_connections(("smb", "afp"))
        for share in one.shares
    }
    return tuple(sorted(found, key=lambda one: (one.share, one.user, one.machine)))


class ReadSessions(Request, tag="read-sessions"):
    """Who has which share open."""

    def read(self) -> object:
        return read_sessions()


class ReadConnections(Request, tag="read-connections"):
    """Who is connected over any protocol, with what open."""

    def read(self) -> object:
        return read_connections()
