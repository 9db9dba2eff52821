"""Mount datasets: where a pool's folders may be mounted, and the one function that mounts them.

A pool brings its own mountpoints, and one of them may be ``/etc``; it may ask the system to export it (``sharenfs``),
carry programs that run as root (``setuid``) and device nodes, or hold a symbolic link where a folder below it is
mounted. Who may write in a shared folder can put such a link there at any time. ZFS follows all of that. So ``mount``
goes down to the place by descriptor, without following a link, mounts onto what the descriptor holds, and looks
afterwards where it came to be.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from appliance import command, names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.datasets import Dataset
from appliance.files import traversal
from appliance.formatting import names_text
from appliance.message import Message
from appliance.operation import Step, Work
from appliance.system import paths
from appliance.zfs import json_output, kstat, mountpoints, private_mount

COLUMNS = (
    "type",
    "mountpoint",
    "canmount",
    "mounted",
    "keystatus",
    "sharenfs",
    "sharesmb",
    "setuid",
    "devices",
    "overlay",
)
SAFE = {"sharenfs": "off", "sharesmb": "off", "setuid": "off", "devices": "off", "overlay": "off"}
# libzfs_mount.c, zfs_add_options: Linux keeps these for each mount, so they are given by whoever mounts.
OPTIONS = {
    "atime": ("atime", "noatime"),
    "relatime": ("relatime", "strictatime"),
    "devices": ("dev", "nodev"),
    "exec": ("exec", "noexec"),
    "readonly": ("ro", "rw"),
    "setuid": ("suid", "nosuid"),
    "nbmand": ("mand", "nomand"),
}
QUIET_TEXT = f"zfs set -u {' '.join(f'{key}={value}' for key, value in SAFE.items())} DATASET"
SECONDS = 120
# For what makes a dataset: neither ZFS nor the next start of the box mounts it, only mount_new.
NOT_YET = ("-o", "canmount=noauto")


class Carried(msgspec.Struct, frozen=True):
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
    return str(paths.POOLS / pool)


def is_inside(mountpoint: str, home: str, also: frozenset[str] = frozenset()) -> bool:
    """Whether a mountpoint is the pool's own folder, lies below it, spelled plainly, or is one of ``also``."""
    if json_output.REPLACEMENT in mountpoint:
        return False  # not the place that it has
    if mountpoint in also:
        return True
    if mountpoint != home and not mountpoint.startswith(f"{home}/"):
        return False
    try:
        names.served_path(f"/pool{mountpoint.removeprefix(home)}")
    except Refused:
        return False
    return True


def own_folders(pool: str, datasets: Iterable[Dataset]) -> frozenset[str]:
    """The folders in which a pool may have its own mounted: its usual place, where root has put the whole pool, and
    where a folder of it is mounted now. Never one of the system's folders."""
    found = {home_of(pool)}
    for one in datasets:
        if one.pool == pool and (one.mounted or (one.name == pool and one.can_mount)) and one.mountpoint[:1] == "/":
            found.add(one.mountpoint)
    return frozenset(place for place in found if not names.is_system_folder(place))


def reason_against(name: str, place: str, datasets: Iterable[Dataset]) -> Reason | None:
    """Why a dataset is not mounted at that place; None where it may be."""
    if any(is_inside(place, folder) for folder in own_folders(name.split("/", 1)[0], datasets)):
        return None
    return Reason(
        "mountpoint-outside-pool",
        "The mountpoint of {dataset} is {place}, outside the folder of its pool. Larder mounts nothing there.",
        dataset=name,
        place=place,
    )


def foreign_properties(pool: str) -> tuple[Carried, ...]:
    """The datasets of an imported pool as they are, parents before children. Raises Failed.

    A dataset whose very name no command should see is left out; nothing is done with it, and nothing mounts it here.
    """
    return read_mountpoints(["-r", "-t", "filesystem,volume", pool], COLUMNS)


def read_mountpoints(words: Sequence[str], columns: Sequence[str]) -> tuple[Carried, ...]:
    """What ``zfs list`` says of these datasets. Raises Failed."""
    argv = ["zfs", "list", "-j", "-p", "-o", f"name,{','.join(columns)}", *words]
    listing = json_output.read_json(argv, timeout=SECONDS)
    found = []
    for name, raw in (listing.get("datasets") or {}).items():
        properties = raw.get("properties") or {}
        values = {key: str((properties.get(key) or {}).get("value", "")) for key in columns}
        own = {
            key
            for key in columns
            if str(((properties.get(key) or {}).get("source") or {}).get("type", "")).upper() in {"LOCAL", "RECEIVED"}
        }
        found.append(Carried(str(name), values.get("type", ""), values, frozenset(own)))
    return tuple(found)


def is_nameable(name: str) -> bool:
    """Whether a dataset's name is one that commands may be given."""
    try:
        names.existing_dataset(name)
    except Refused:
        return False
    return True


def move_commands(found: Sequence[Carried], pool: str, *, former: str, everything: bool) -> Iterator[list[str]]:
    """Commands that bring mountpoints below the pool's own folder.

    The pool's own top folder follows a new name of the pool; ``everything`` else only where the person asked for it.
    """
    home = home_of(pool)
    for dataset in found:
        place = dataset.values["mountpoint"]
        if dataset.kind != "filesystem" or not is_nameable(dataset.name) or is_inside(place, home):
            continue
        if dataset.name == pool and place.startswith("/") and (everything or place == home_of(former)):
            yield ["zfs", "set", "-u", f"mountpoint={home}", pool]
        elif dataset.name != pool and "mountpoint" in dataset.own and place.startswith("/") and everything:
            yield ["zfs", "inherit", "mountpoint", dataset.name]


def lent_settings(dataset: Carried, pool: str) -> dict[str, str]:
    """The settings of SAFE that a dataset has to be given, since it is where they come from."""
    return {
        key: value
        for key, value in SAFE.items()
        if (dataset.name == pool or key in dataset.own)
        and dataset.kind == "filesystem"
        and dataset.values.get(key, "") not in {value, "", "-"}
    }


def safety_commands(found: Sequence[Carried], pool: str) -> Iterator[list[str]]:
    """Commands after which nothing of the pool exports itself or lends root's rights."""
    for dataset in found:
        if (wanted := lent_settings(dataset, pool)) and is_nameable(dataset.name):
            yield ["zfs", "set", "-u", *(f"{key}={value}" for key, value in wanted.items()), dataset.name]


def neutralise_properties(
    found: Sequence[Carried], pool: str, also: frozenset[str] = frozenset()
) -> Iterator[list[str]]:
    """Commands after which nothing of the pool mounts itself elsewhere, exports itself or lends root's rights."""
    home = home_of(pool)
    for dataset in found:
        wanted = lent_settings(dataset, pool)
        if dataset.mounts_itself and not is_inside(dataset.values["mountpoint"], home, also):
            wanted["canmount"] = "noauto"
        if wanted and is_nameable(dataset.name):
            yield ["zfs", "set", "-u", *(f"{key}={value}" for key, value in wanted.items()), dataset.name]


def mounted_elsewhere(found: Iterable[Carried], pool: str) -> list[Carried]:
    """The datasets that would mount themselves outside the pool's own folder."""
    home = home_of(pool)
    return [one for one in found if one.mounts_itself and not is_inside(one.values["mountpoint"], home)]


def may_be_mounted(one: Carried, top: Carried | None, also: frozenset[str]) -> bool:
    """Whether its place lies in a folder of its pool, by what ZFS and the kernel say at this moment."""
    pool, place = one.name.split("/", 1)[0], one.values["mountpoint"]
    folders = {
        home_of(pool),
        *(at for name, at in mountpoints.mounted_places() if name.split("/", 1)[0] == pool and "@" not in name),
    }
    if top and top.mounts_itself:
        folders.add(top.values["mountpoint"])
    found = any(is_inside(place, folder) for folder in folders if not names.is_system_folder(folder))
    return found or (place in also and not names.is_system_folder(place) and json_output.REPLACEMENT not in place)


def mount_options(values: dict[str, str], *, read_only: bool) -> str:
    """The options with which ``zfs mount`` would mount it."""
    values = {**values, **({"readonly": "on", "setuid": "off", "devices": "off"} if read_only else {})}
    said = [on if values.get(key) == "on" else off for key, (on, off) in OPTIONS.items()]
    if "noatime" in said:
        said.remove("relatime" if "relatime" in said else "strictatime")
    # Where the kernel finds it again to show its snapshots (.zfs); a comma would begin another option.
    hint = [] if "," in values["mountpoint"] else [f"mntpoint={values['mountpoint']}"]
    return ",".join([*said, "zfsutil", *hint])


def mount_dataset(
    name: str, work: Work, *, read_only: bool = False, new: bool = False, also: frozenset[str] = frozenset()
) -> None:
    """Mount a dataset at its place. Every mount that Larder makes for others to see is made here.
    Raises Failed, Blocked.

    ``new``: nobody has seen it at this place yet, so a folder there has to be empty;
    ``also``: further places that are its own.
    """
    pool = name.split("/", 1)[0]
    asked = ["-t", "filesystem", *dict.fromkeys((name, pool))]
    found = {one.name: one for one in read_mountpoints(asked, tuple(dict.fromkeys((*COLUMNS, *OPTIONS))))}
    one = found.get(name)
    if one is None:
        raise Failed(Message("{name} is no longer there", name=name))
    place = one.values["mountpoint"]
    if one.values["mounted"] == "yes":
        work.note(Message("{name} is mounted already", name=name))
        return
    if one.locked:
        raise Failed(Message("{name} is locked. Unlock it first", name=name))
    if one.values["canmount"] == "off" or not place.startswith("/"):
        raise Failed(Message("{name} has no place among the folders of this box", name=name))
    if not may_be_mounted(one, found.get(pool), also):
        raise Failed(
            Message(
                "{name} wants to be at {place}, outside the folder of its pool. Larder mounts nothing there",
                name=name,
                place=place,
            )
        )
    with mountpoints.hold_folder(place, make=True) as (handle, above):
        if mountpoints.begins_mount(handle, above):
            raise mountpoints.Blocked(Message("Something else is mounted at {place}", place=place))
        if mountpoints.holds_files(handle):
            if new:
                raise mountpoints.Blocked(
                    Message(
                        "There is something at {place} already. Choose another name, or move it away first", place=place
                    )
                )
            work.note(
                Message(
                    "Files that were at {place} while {name} was not mounted are hidden by it", place=place, name=name
                )
            )
        attach_mount(name, handle, mount_options(one.values, read_only=read_only))
        if not mountpoints.is_mounted_at(place, name):
            unmount_dataset(name)
            raise mountpoints.Blocked(
                Message(
                    "The folder at {place} was moved while {name} was being mounted, so it was unmounted again",
                    place=place,
                    name=name,
                )
            )
    work.note(Message("Mounted {name}", name=name))


def attach_mount(name: str, handle: int, with_options: str) -> None:
    """Mount onto the folder that a descriptor holds, whatever its name has become.

    By mount(8), so that a pool that does not answer holds up no more than one command: ``-i`` without ZFS's
    helper and ``-c`` without resolving the path, either of which would go by names again. The dot is needed:
    the last part is not followed.
    """
    command.run(mount_argv(name, f"/proc/self/fd/{handle}/.", with_options), timeout=SECONDS, holding=handle)


def mount_argv(name: str, place: str, with_options: str) -> list[str]:
    return ["mount", "-i", "-c", "-n", "-t", "zfs", "-o", with_options, "--", name, place]


def remember_argv(name: str) -> list[str]:
    """Have a dataset that was made with ``NOT_YET`` mounted at each start of the box."""
    return ["zfs", "set", "-u", "canmount=on", name]


def unmount_dataset(name: str) -> None:
    """Unmount a dataset wherever it is mounted, by descriptor. Raises Failed."""
    for found, place in list(mountpoints.mounted_places()):
        if found == name:
            with traversal.open_dir_nofollow(place) as handle:
                traversal.refuse_unless_of(handle, name)
                private_mount.libc_function("umount2", f"/proc/self/fd/{handle}".encode(), private_mount.MNT_DETACH)


def mount_text(name: str, place: str = "MOUNTPOINT", *, new: bool = False) -> str:
    """The commands of ``mount`` or ``mount_new`` as a plan shows them.

    The options are read from its properties when it is mounted, and the folder is given as an open descriptor.
    """
    commands = [mount_argv(name, place, "OPTIONS"), *([remember_argv(name)] if new else [])]
    return "\n".join(map(shlex.join, commands))


def mount_step(name: str, place: str, *, new: bool = False) -> Step:
    def act(work: Work) -> None:
        if new:
            mount_new(name, work)
        else:
            mount_dataset(name, work)

    return Step(
        "mount",
        Message("Mount it at {place}", place=place),
        mount_text(name, place, new=new),
        act,
        (name,),
        Message("Unmount it"),
    )


def mount_new(name: str, work: Work) -> None:
    """Mount a dataset that was just made with ``NOT_YET``, and have it mounted at each start from then on."""
    mount_dataset(name, work, new=True)
    command.run(remember_argv(name), timeout=60)


def mount_all(
    found: Sequence[Carried], pool: str, *, read_only: bool, work: Work, also: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Mount what belongs below the pool's own folder, from the top down; say what is left alone.
    Returns the folders that could not be mounted. Raises Failed where the pool has stopped or ZFS does not answer."""
    home, left = home_of(pool), list[str]()
    ready = [one for one in found if one.mounts_itself and one.values["mounted"] != "yes" and is_nameable(one.name)]
    for dataset in sorted(ready, key=lambda one: (one.values["mountpoint"].count("/"), one.values["mountpoint"])):
        place = dataset.values["mountpoint"]
        work.stop_if_asked()
        if dataset.locked:
            work.note(Message("{name} is encrypted: unlock it to see its files", name=dataset.name))
        elif not is_inside(place, home, also):
            work.note(
                Message(
                    "{name} wants to be at {place}, outside {home}, and was left unmounted",
                    name=dataset.name,
                    place=place,
                    home=home,
                )
            )
        else:
            try:
                mount_dataset(dataset.name, work, read_only=read_only, also=also)
            except mountpoints.Blocked as blocked:
                left.append(dataset.name)
                work.note(Message("{name} was left unmounted: {blocked}", name=dataset.name, blocked=blocked))
                if not read_only:
                    argv = ["zfs", "set", "-u", "canmount=noauto", dataset.name]
                    command.run(argv, timeout=60, accept=range(256))
            except Failed as failed:
                if kstat.fails_for_all(failed, pool):
                    raise
                # The others have their places. Its own may be missing where nothing can be made
                # (readonly=on), or it is damaged.
                left.append(dataset.name)
                work.note(Message("{name} could not be mounted: {what}", name=dataset.name, what=failed.said or failed))
    return tuple(left)


def note_left(left: Sequence[str], work: Work) -> None:
    """Name at the end what ``mount_all`` could not mount."""
    if left:
        work.note(Message("Left unmounted: {names}. The reasons are above.", names=names_text(left, 5)))
