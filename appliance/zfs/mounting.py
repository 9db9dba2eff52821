"""Where the folders of a pool from elsewhere may be mounted, and what else their properties must not do here.

A pool brings its own mountpoints, and one of them may be ``/etc``; it may ask the system to export it (``sharenfs``), carry
programs that run as root (``setuid``) and device nodes, or hold a symbolic link where a folder below it is mounted. ZFS
follows all of that, also at each start of the box. So everything is looked at before anything is mounted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance import command, names, places
from appliance.errors import Refused
from appliance.operation import Work
from appliance.zfs import status

COLUMNS = ("type", "mountpoint", "canmount", "mounted", "keystatus", "sharenfs", "sharesmb", "setuid", "devices")
SAFE = {"sharenfs": "off", "sharesmb": "off", "setuid": "off", "devices": "off"}


@dataclass(frozen=True)
class Carried:
    """A dataset with the properties it brought along; ``own`` are those set on itself and not inherited."""

    name: str
    kind: str  # filesystem, volume
    values: dict[str, str]
    own: frozenset[str]

    @property
    def mounts_itself(self) -> bool:
        return (
            self.kind == "filesystem"
            and self.values.get("canmount") == "on"
            and self.values.get("mountpoint", "").startswith("/")
        )

    @property
    def locked(self) -> bool:
        return self.values.get("keystatus") == "unavailable"


def home_of(pool: str) -> str:
    """The folder that a pool's own folders belong below."""
    return str(places.POOLS / pool)


def inside(mountpoint: str, home: str, also: frozenset[str] = frozenset()) -> bool:
    """Whether a mountpoint is the pool's own folder, lies below it, spelled plainly, or is one of ``also``."""
    if mountpoint in also:
        return True
    if mountpoint != home and not mountpoint.startswith(f"{home}/"):
        return False
    try:
        names.served_path(f"/pool{mountpoint.removeprefix(home)}")
    except Refused:
        return False
    return True


def carried(pool: str) -> tuple[Carried, ...]:
    """The datasets of an imported pool as they are, parents before children. Raises Failed.

    A dataset whose very name no command should see is left out; nothing is done with it, and nothing mounts it here.
    """
    argv = ["zfs", "list", "-j", "-p", "-r", "-t", "filesystem,volume", "-o", f"name,{','.join(COLUMNS)}", pool]
    listing = status.parse(command.run(argv, timeout=120).stdout, "zfs list")
    found = []
    for name, raw in (listing.get("datasets") or {}).items():
        properties = raw.get("properties") or {}
        values = {key: str((properties.get(key) or {}).get("value", "")) for key in COLUMNS}
        own = {
            key
            for key in COLUMNS
            if str(((properties.get(key) or {}).get("source") or {}).get("type", "")).upper() in {"LOCAL", "RECEIVED"}
        }
        found.append(Carried(str(name), values["type"], values, frozenset(own)))
    return tuple(found)


def nameable(name: str) -> bool:
    """Whether a dataset's name is one that commands may be given."""
    try:
        names.existing_dataset(name)
    except Refused:
        return False
    return True


def moved(found: Sequence[Carried], pool: str, *, former: str, everything: bool) -> Iterator[list[str]]:
    """Commands that bring mountpoints below the pool's own folder.

    The pool's own top folder follows a new name of the pool; ``everything`` else only where the person asked for it.
    """
    home = home_of(pool)
    for dataset in found:
        place = dataset.values["mountpoint"]
        if dataset.kind != "filesystem" or not nameable(dataset.name) or inside(place, home):
            continue
        if dataset.name == pool and place.startswith("/") and (everything or place == home_of(former)):
            yield ["zfs", "set", "-u", f"mountpoint={home}", pool]
        elif dataset.name != pool and "mountpoint" in dataset.own and place.startswith("/") and everything:
            yield ["zfs", "inherit", "mountpoint", dataset.name]


def tamed(found: Sequence[Carried], pool: str, also: frozenset[str] = frozenset()) -> Iterator[list[str]]:
    """Commands after which nothing of the pool mounts itself elsewhere, exports itself or lends root's rights."""
    home = home_of(pool)
    for dataset in found:
        wanted = {
            key: value
            for key, value in SAFE.items()
            if (dataset.name == pool or key in dataset.own)
            and dataset.kind == "filesystem"
            and dataset.values.get(key, "") not in {value, "", "-"}
        }
        if dataset.mounts_itself and not inside(dataset.values["mountpoint"], home, also):
            wanted["canmount"] = "noauto"
        if wanted and nameable(dataset.name):
            yield ["zfs", "set", "-u", *(f"{key}={value}" for key, value in wanted.items()), dataset.name]


def elsewhere(found: Iterable[Carried], pool: str) -> list[Carried]:
    """The datasets that would mount themselves outside the pool's own folder."""
    home = home_of(pool)
    return [one for one in found if one.mounts_itself and not inside(one.values["mountpoint"], home)]


def through_a_link(mountpoint: str) -> bool:
    """Whether the way to a mountpoint leads over a symbolic link, which mounting would follow."""
    path = Path(mountpoint)
    return path.resolve() != path


def mount_all(
    found: Sequence[Carried], pool: str, *, read_only: bool, work: Work, also: frozenset[str] = frozenset()
) -> None:
    """Mount what belongs below the pool's own folder, from the top down; say what is left alone. Raises Failed."""
    home = home_of(pool)
    ready = [one for one in found if one.mounts_itself and one.values["mounted"] != "yes" and nameable(one.name)]
    for dataset in sorted(ready, key=lambda one: (one.values["mountpoint"].count("/"), one.values["mountpoint"])):
        place = dataset.values["mountpoint"]
        work.stop_if_asked()
        if dataset.locked:
            work.note(f"{dataset.name} is encrypted: unlock it to see its files")
        elif not inside(place, home, also):
            work.note(f"{dataset.name} wants to be at {place}, outside {home}, and was left unmounted")
        elif through_a_link(place):
            work.note(f"{dataset.name} would be mounted through a symbolic link at {place}, and was left unmounted")
            if not read_only:
                command.run(["zfs", "set", "canmount=noauto", dataset.name], timeout=60)
        else:
            options = ["-o", "nosuid,nodev"] if read_only else []
            try:
                command.run(["zfs", "mount", *options, dataset.name], timeout=120)
            except command.CommandFailed as failed:
                if not read_only:
                    raise
                # Its folder may be missing, and on a pool that is only read none can be made.
                work.note(f"{dataset.name} could not be mounted: {failed.said}")
            else:
                work.note(f"Mounted {dataset.name}")
