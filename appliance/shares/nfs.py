"""NFS exports through the kernel's server: one line a folder in a file of Larder's own beside the system's ``exports``.

Every export carries ``mountpoint``: without its file system nothing is served, so a locked or missing folder never
shows the empty place beneath it (exports(5)). ``insecure`` lets clients come from ports above 1023, as Finder, phones
and virtual machines do; a low port proves nothing where everybody is root on a machine of their own. Names that cannot
be resolved are left out by ``exportfs`` with a warning and no error (nfs-utils 2.8.3): reading back finds them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from appliance import command, names
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.message import Message
from appliance.shares import nfs_access, nfs_export_rules
from appliance.shares.owned_file import OwnedFile
from appliance.shares.settings import Nfs, Part, Protocol, wanted_shares
from appliance.system.accounts import people_number
from appliance.system.addresses import bracketed

CONFIG = Path("/etc/exports.d/larder.exports")
UNIT = "nfs-server.service"
UNLOCK = Path("/proc/fs/nfsd/unlock_filesystem")
LINE = re.compile(r'"(?P<path>/[^"]*)"(?P<clients>( [a-z0-9.:/-]+\([a-z0-9_,=]+\))+)')
CLIENT = re.compile(r" (?P<host>[a-z0-9.:/-]+)\((?P<options>[a-z0-9_,=]+)\)")
LISTED = re.compile(r"(?P<path>/\S*)\s+(?P<host>[^\s(]+)\((?P<options>[^)]*)\)")


class Export(msgspec.Struct, frozen=True):
    """One folder for one client, as the file says it or as the server tells it."""

    path: str
    host: str
    options: frozenset[str]


def quote_path(path: str) -> str:
    """A path for exports(5): in quotes, with what it must not hold as octal."""
    escaped = "".join(f"\\{ord(letter):03o}" if letter in ' "\\#' else letter for letter in path)
    return f'"{escaped}"'


def unquote_path(path: str) -> str:
    """The path that ``quote_path`` or ``exportfs`` wrote."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def export_options(setting: Nfs, everybody: tuple[int, int] | None = None) -> str:
    """The options of one export; without ``no_subtree_check`` a renamed file would be lost to who has it open.

    ``everybody``: the uid and gid as which all users of those computers count.
    """
    squash = [f"all_squash,anonuid={everybody[0]},anongid={everybody[1]}"] if everybody else []
    return ",".join(
        [
            "rw" if setting.write else "ro",
            "sync" if setting.sync else "async",
            "no_root_squash" if setting.root and not everybody else "root_squash",
            *squash,
            "no_subtree_check",
            "insecure",
            "mountpoint",
        ]
    )


def wanted_exports(facts: Facts) -> Iterator[tuple[Dataset, Nfs]]:
    """The datasets that are to be served over NFS, with their settings."""
    for dataset, part in wanted_shares(facts, "nfs"):
        if isinstance(part, Nfs):
            yield dataset, part


def render_exports(facts: Facts) -> str:
    """The text of the file."""
    gid = people_number()
    lines = []
    for dataset, setting in wanted_exports(facts):
        how = export_options(setting, nfs_access.squashed_numbers(setting, facts.accounts, gid))
        hosts = " ".join(f"{host}({how})" for host in nfs_export_rules.check_clients(setting.hosts))
        lines.append(f"{quote_path(dataset.mountpoint)} {hosts}")
    return "".join(f"{line}\n" for line in sorted(lines))


def parse_exports(text: str) -> list[Export]:
    """The exports of a file that Larder could have written. Raises Failed at the first line that it could not."""
    found = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            raise Failed(Message("The NFS server did not accept this line"), line[:300])
        path = unquote_path(match["path"])
        found += [
            Export(path, client["host"], frozenset(client["options"].split(",")))
            for client in CLIENT.finditer(match["clients"])
        ]
    return found


def check_exports(path: Path) -> None:
    """Whether the server would take this file. ``exportfs`` has no dry run, so the file is read by its own grammar."""
    known = {
        "rw",
        "ro",
        "sync",
        "async",
        "root_squash",
        "no_root_squash",
        "all_squash",
        "no_subtree_check",
        "insecure",
        "mountpoint",
    }
    for export in parse_exports(path.read_text(encoding="utf-8")):
        names.served_path(export.path)
        nfs_export_rules.check_client(export.host)
        if unknown := {one for one in export.options - known if not re.fullmatch(r"anon[ug]id=[1-9][0-9]{0,9}", one)}:
            raise Failed(Message("The NFS server does not know these options"), ", ".join(sorted(unknown)))


def parse_listed(text: str) -> list[Export]:
    """What ``exportfs -s`` says is served."""
    return [
        Export(unquote_path(found["path"]), found["host"], frozenset(found["options"].split(",")))
        for found in map(LISTED.fullmatch, (line.rstrip() for line in text.splitlines()))
        if found
    ]


class NfsServing(msgspec.Struct, frozen=True):
    """The kernel's server as ``serving.py`` wants it. A share's name is its path."""

    owned: OwnedFile
    name: Protocol = "nfs"
    units: tuple[str, ...] = (UNIT,)

    def shares(self, facts: Facts) -> tuple[Share, ...]:
        return tuple(Share("nfs", dataset.mountpoint, dataset.mountpoint) for dataset, _part in wanted_exports(facts))

    def render(self, facts: Facts) -> str:
        return render_exports(facts)

    def against(self, dataset: Dataset, part: Part, facts: Facts) -> Iterator[Reason]:
        who = part.everybody_as if isinstance(part, Nfs) else ""
        if who and not facts.account(who):
            yield Reason("user-missing", "There is no user {user}.", field="everybody_as", user=who)

    def warnings(self, part: Part) -> Iterator[str]:
        if not isinstance(part, Nfs):
            return
        if part.everybody_as:
            yield Message(
                "Everybody on those computers counts as {everybody_as} in this folder, without a password.",
                everybody_as=part.everybody_as,
            )
        if part.root:
            yield Message("Root on those computers is root in this folder: it can read and change every file.")
        if not part.sync:
            yield Message("Writes are confirmed before they are on disk: a power cut can lose the last seconds.")
        yield from (
            Message("{host} reaches beyond your home.", host=host)
            for host in part.hosts
            if nfs_export_rules.is_public(host)
        )

    def take_up(self, shares: tuple[Share, ...]) -> None:
        """Start the server with the first export, stop it with the last; it keeps running for exports
        that an administrator added."""
        if shares:
            if not is_running():
                command.run(["systemctl", "enable", "--now", UNIT], timeout=120)
            refresh_exports()
        elif is_running():
            refresh_exports()
            if not read_served():
                command.run(["systemctl", "disable", "--now", UNIT], timeout=120)

    def served(self) -> frozenset[tuple[str, str]]:
        """The folders that the running server serves to every client that they are meant for."""
        if not is_running():
            return frozenset()
        now = {(export.path, export.host) for export in read_served()}
        return frozenset((path, path) for path, hosts in self.clients() if all((path, host) in now for host in hosts))

    def why_not(self, paths: Collection[str] | None = None) -> str:
        unknown = self.unknown(paths)
        return (
            Message("Nobody in the network knows {unknown}. Use its address instead", unknown=", ".join(unknown))
            if unknown
            else ""
        )

    def unknown(self, paths: Collection[str] | None = None) -> tuple[str, ...]:
        """Clients in the file that the server does not serve because nobody knows an address of that name now."""
        if not is_running():
            return ()
        now = {(export.path, export.host) for export in read_served()}
        found = {
            host
            for path, hosts in self.clients()
            for host in hosts
            if (path, host) not in now and (paths is None or path in paths)
        }
        return tuple(sorted(found))

    def close(self, gone: Iterable[Share]) -> None:
        """Take away what clients still hold of these folders: exports, handles, locks and open files."""
        places = sorted({share.path for share in gone})
        if not places or not is_running():
            return
        for export in read_served():
            if export.path in places:
                command.run(
                    ["exportfs", "-u", f"{bracketed(export.host)}:{export.path}"], timeout=60, accept=range(256)
                )
        command.run(["exportfs", "-f"], timeout=60)
        for path in places:
            release_files(path)

    def clients(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The folders in Larder's file as it stands with who may mount them; none where there is no file."""
        try:
            exports = parse_exports(self.owned.path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, Failed):
            return ()
        paths = dict.fromkeys(export.path for export in exports)
        return tuple((path, tuple(export.host for export in exports if export.path == path)) for path in paths)

    def configured(self) -> tuple[Share, ...]:
        return tuple(Share("nfs", path, path) for path, _hosts in self.clients())


SERVING = NfsServing(OwnedFile(CONFIG, check_exports))


def release_files(path: str) -> None:
    """Have the server let go of locks and open files of the file system at that place."""
    try:
        UNLOCK.write_text(path)
    except OSError:
        pass  # nothing of NFS is open on that file system, or it is gone: both are what was wanted


def read_served() -> list[Export]:
    """All that the server serves now, also what Larder did not ask for. Raises Failed."""
    return parse_listed(command.run(["exportfs", "-s"], timeout=60).stdout)


def is_running(unit: str = UNIT) -> bool:
    said = command.run(["systemctl", "is-active", unit], timeout=30, accept=range(256))
    return said.stdout.strip() == "active"


def refresh_exports() -> None:
    """Have the server read every file of exports again. Raises Failed where it takes exception to one of them."""
    result = command.run(["exportfs", "-r"], timeout=120, accept=range(256))
    if result.status:
        raise Failed(Message("The NFS server does not accept the exports"), result.stderr)
