"""NFS exports through the kernel's server: one line a folder in a file of Larder's own beside the system's ``exports``.

Every export carries ``mountpoint``: without its file system nothing is served, so a locked or missing folder never
shows the empty place beneath it (exports(5)). ``insecure`` lets clients come from ports above 1023, as Finder, phones
and virtual machines do; a low port proves nothing where everybody is root on a machine of their own. Names that cannot
be resolved are left out by ``exportfs`` with a warning and no error (nfs-utils 2.8.3): reading back finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance import command, names
from appliance.errors import Failed, Refused
from appliance.facts import Dataset, Facts
from appliance.shares import clients
from appliance.shares.owned_file import OwnedFile
from appliance.shares.setting import Nfs, setting_of

CONFIG = Path("/etc/exports.d/larder.exports")
UNIT = "nfs-server.service"
UNLOCK = Path("/proc/fs/nfsd/unlock_filesystem")
LINE = re.compile(r'"(?P<path>/[^"]*)"(?P<clients>( [a-z0-9.:/-]+\([a-z_,]+\))+)')
CLIENT = re.compile(r" (?P<host>[a-z0-9.:/-]+)\((?P<options>[a-z_,]+)\)")
LISTED = re.compile(r"(?P<path>/\S*)\s+(?P<host>[^\s(]+)\((?P<options>[^)]*)\)")


@dataclass(frozen=True)
class Export:
    """One folder for one client, as the file says it or as the server tells it."""

    path: str
    host: str
    options: frozenset[str]


def quoted(path: str) -> str:
    """A path for exports(5): in quotes, with what it must not hold as octal."""
    escaped = "".join(f"\\{ord(letter):03o}" if letter in ' "\\#' else letter for letter in path)
    return f'"{escaped}"'


def plain(path: str) -> str:
    """The path that ``quoted`` or ``exportfs`` wrote."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def options(setting: Nfs) -> str:
    """The options of one export; without ``no_subtree_check`` a renamed file would be lost to who has it open."""
    return ",".join(
        [
            "rw" if setting.write else "ro",
            "sync" if setting.sync else "async",
            "no_root_squash" if setting.root else "root_squash",
            "no_subtree_check",
            "insecure",
            "mountpoint",
        ]
    )


def exported(datasets: Iterable[Dataset]) -> Iterator[tuple[Dataset, Nfs]]:
    """The datasets that are to be served over NFS, with their settings."""
    for dataset in datasets:
        setting = setting_of(dataset)
        if setting and setting.nfs and servable(dataset):
            yield dataset, setting.nfs


def servable(dataset: Dataset) -> bool:
    """Whether it can be mounted at a place that may be served; a mountpoint comes with disks from anywhere."""
    try:
        names.served_path(dataset.mountpoint)
    except Refused:
        return False
    return dataset.can_mount


def render_datasets(datasets: Iterable[Dataset]) -> str:
    """The text of the file for these datasets."""
    lines = [
        f"{quoted(dataset.mountpoint)} {' '.join(f'{host}({options(setting)})' for host in clients.clients(setting.hosts))}"
        for dataset, setting in exported(datasets)
    ]
    return "".join(f"{line}\n" for line in sorted(lines))


def parse(text: str) -> list[Export]:
    """The exports of a file that Larder could have written. Raises Failed at the first line that it could not."""
    found = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            raise Failed("The NFS server would not take this line", line[:300])
        path = plain(match["path"])
        found += [
            Export(path, client["host"], frozenset(client["options"].split(",")))
            for client in CLIENT.finditer(match["clients"])
        ]
    return found


def check(path: Path) -> None:
    """Whether the server would take this file. ``exportfs`` has no dry run, so the file is read by its own grammar."""
    known = {"rw", "ro", "sync", "async", "root_squash", "no_root_squash", "no_subtree_check", "insecure", "mountpoint"}
    for export in parse(path.read_text(encoding="utf-8")):
        names.served_path(export.path)
        clients.client(export.host)
        if not export.options <= known:
            raise Failed("The NFS server does not know these options", ", ".join(sorted(export.options - known)))


def listed(text: str) -> list[Export]:
    """What ``exportfs -s`` says is served."""
    return [
        Export(plain(found["path"]), found["host"], frozenset(found["options"].split(",")))
        for found in map(LISTED.fullmatch, (line.rstrip() for line in text.splitlines()))
        if found
    ]


def configured() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The folders in Larder's file as it stands with who may mount them; none where there is no file."""
    try:
        exports = parse(CONFIG.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, Failed):
        return ()
    paths = dict.fromkeys(export.path for export in exports)
    return tuple((path, tuple(export.host for export in exports if export.path == path)) for path in paths)


class NfsServing:
    """What the engine of shares asks of NFS (``appliance/shares/serving.py``). A share's name is its path."""

    name = "nfs"
    units = (UNIT,)
    owned = OwnedFile(CONFIG, check)

    def render(self, facts: Facts) -> str:
        return render_datasets(facts.datasets)

    def check(self, path: Path) -> None:
        check(path)

    def take_up(self) -> None:
        """Have the server serve what the file says: start it with the first export, stop it with the last.

        Reloading drops nobody. An administrator's own exports keep the server running. Raises Failed with its words.
        """
        if configured():
            if not running():
                command.run(["systemctl", "enable", "--now", UNIT], timeout=120)
            refresh()
        elif running():
            refresh()
            if not self.everything():
                command.run(["systemctl", "disable", "--now", UNIT], timeout=120)

    def everything(self) -> list[Export]:
        """All that the server serves now, also what Larder did not ask for. Raises Failed."""
        return listed(command.run(["exportfs", "-s"], timeout=60).stdout)

    def served(self) -> set[tuple[str, str]]:
        """The folders that the running server serves to every client that they are meant for."""
        if not running():
            return set()
        now = {(export.path, export.host) for export in self.everything()}
        return {(path, path) for path, hosts in configured() if all((path, host) in now for host in hosts)}

    def unresolved(self) -> set[str]:
        """Clients in the file that the server does not serve because nobody knows an address of that name."""
        now = {(export.path, export.host) for export in self.everything()}
        return {host for path, hosts in configured() for host in hosts if (path, host) not in now}

    def close(self, gone: Iterable[tuple[str, str]]) -> None:
        """Forget what clients still hold of folders that are no longer served: handles, locks and open files."""
        if not running():
            return
        command.run(["exportfs", "-f"], timeout=60)
        for _name, path in sorted(gone):
            try:
                UNLOCK.write_text(path)
            except OSError:
                # Nothing of NFS is open on that file system, or it is gone: both are what was wanted.
                continue


def running() -> bool:
    said = command.run(["systemctl", "is-active", UNIT], timeout=30, accept=range(256))
    return said.stdout.strip() == "active"


def refresh() -> None:
    """Have the server read every file of exports again. Raises Failed where it takes exception to one of them."""
    result = command.run(["exportfs", "-r"], timeout=120, accept=range(256))
    if result.status:
        raise Failed("The NFS server does not take the exports", result.stderr)
