"""Where a restore receives into: a folder of its own, out of use, until everything has arrived and gets its place.

It carries the mark of a copy of nothing, and each folder received into it the mark of a copy of the copy. So no
schedule takes snapshots there, no backup copies it, and nothing of it is mounted or shared. A copy that was set aside
carries the same mark; what a restore has made is known by ``larder:restore``, which says its token.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import msgspec

from appliance import command, names
from appliance.backups import copies
from appliance.backups.origin import Origin, parse_origin
from appliance.backups.stored_keys import unlock_restored
from appliance.backups.transfer import Transfer
from appliance.datasets import access_note
from appliance.errors import Failed, Refused, explain_error
from appliance.facts import user_properties
from appliance.facts.copy_mark import CopyMark, is_continued, parse_copy_mark
from appliance.facts.datasets import names_above
from appliance.formatting import names_text
from appliance.message import Message
from appliance.operation import Work
from appliance.shares.settings import ShareSetting
from appliance.snapshots.policy import Policy
from appliance.zfs import kstat, list_snapshots, mount, mountpoints, volmode

SECONDS = 300
MARK = CopyMark(0, raw=False).text  # a copy of nothing
QUIET = {user_properties.SHARE: ShareSetting().text(), user_properties.POLICY: Policy().fingerprint}  # of what is in it
SECONDS_TO_DESTROY = 3600.0  # many blocks have to be freed


class Restored(Transfer, frozen=True):
    """A dataset on its way out of a copy. ``place``: its name once everything has arrived;
    ``guid``: of the snapshot."""

    place: str
    guid: int

    @property
    def properties(self) -> dict[str, str]:
        mark = {user_properties.COPY_OF: CopyMark(self.source.guid, self.raw).text}
        return {
            **({"volmode": "none"} if self.is_volume else {"canmount": "noauto"}),
            **copies.acl_of(self.source),
            **mark,
        }

    @property
    def is_volume(self) -> bool:
        return self.source.kind == "volume"

    @property
    def origin(self) -> Origin | None:
        return parse_origin(self.source)

    @property
    def original(self) -> int:
        """The guid of the dataset that the copy is of; 0 where that is not known."""
        mark = parse_copy_mark(self.source.copy_of)
        return mark.guid if mark else 0

    @property
    def settings_argv(self) -> list[str]:
        """The command that gives it the settings of its original; empty where none is known."""
        pairs = [f"{key}={value}" for key, value in (self.origin.settings if self.origin else {}).items()]
        return ["zfs", "set", "-u", *pairs, self.target] if pairs else []


class Staging(msgspec.Struct, frozen=True):
    """``name``: the dataset; ``parts``: what is received, parents first;
    ``mountpoint``: of the first, empty for a volume."""

    name: str
    parts: tuple[Restored, ...]
    mountpoint: str
    unshare: bool  # the folder above its place is shared, and this one may hold what somebody deleted on purpose

    @property
    def target(self) -> str:
        return self.parts[0].place

    @property
    def create_argv(self) -> list[str]:
        return create_argv(self.name, {user_properties.RESTORE: token_of(self.name)})

    @property
    def rename_argv(self) -> list[str]:
        kind = [] if self.parts[0].is_volume else ["-u"]
        return ["zfs", "rename", *kind, "--", self.parts[0].target, self.target]

    @property
    def unshare_argv(self) -> list[str]:
        return ["zfs", "set", "-u", f"{user_properties.SHARE}={ShareSetting().text()}", self.parts[0].target]

    @property
    def remove_argv(self) -> list[str]:
        return ["zfs", "destroy", "--", self.name]  # without -r: it refuses while anything is in it

    def command_text(self) -> str:
        """The commands of ``put_in_place``."""
        ends = [one_argv for one in self.parts for one_argv in self.usable_argvs(one)]
        return "\n".join(shlex.join(argv) for argv in [*self.before_argvs, self.rename_argv, self.remove_argv, *ends])

    @property
    def before_argvs(self) -> list[list[str]]:
        """The commands before it gets its name: settings, and that it is not shared with the folder above it."""
        settings = [one.settings_argv for one in self.parts if one.settings_argv]
        return [*settings, self.unshare_argv] if self.unshare else settings

    def usable_argvs(self, one: Restored) -> list[list[str]]:
        # A copy does not say whether another computer wrote what is on it.
        first = volmode.mode_argv(one.place) if one.is_volume else mount.remember_argv(one.place)
        return [first, ["zfs", "inherit", user_properties.COPY_OF, one.place]]

    def create(self, work: Work) -> None:
        if is_there(self.name) or self.is_placed():
            work.note(Message("{name} is there already", name=self.name))
            return
        command.run(self.create_argv, timeout=SECONDS)
        if not is_there(self.name):
            raise Failed(Message("{name} was not made", name=self.name))

    def is_placed(self) -> bool:
        """Whether what this restore has received has its name already: the snapshot is there, and the mark as well."""
        first = self.parts[0]
        mark = copies.read_values(first.place, (user_properties.COPY_OF,)).get(user_properties.COPY_OF)
        return mark == first.properties[user_properties.COPY_OF] and has_arrived(first.place, first.guid)

    def put_in_place(self, work: Work) -> None:
        """Rename, then make usable. Interrupted anywhere, it can be done again: the mark of the first goes last.

        Raises Failed; at the end with the names of folders that could not be mounted, which
        keep no other from its place.
        """
        if not self.is_placed():
            if missing := [one.source.name for one in self.parts if not has_arrived(one.target, one.guid)]:
                raise Failed(
                    Message("{missing} has not arrived", missing=missing[0]), Message("Start the restore again.")
                )
            if self.mountpoint:
                mountpoints.refuse_taken(self.mountpoint)
            for argv in self.before_argvs:
                command.run(argv, timeout=SECONDS)
            command.run(self.rename_argv, timeout=SECONDS)
            work.note(Message("{target} is there", target=self.target))
        if is_there(self.name):
            command.run(self.remove_argv, timeout=SECONDS)
        closed, unmounted = list[str](), list[str]()
        for one in self.parts:
            self.open_one(one, closed, unmounted, work)
        for one in reversed(self.parts):
            self.note_access(one)
            command.run(["zfs", "inherit", user_properties.COPY_OF, one.place], timeout=SECONDS)
            if copies.read_values(one.place, (user_properties.COPY_OF,)):
                raise Failed(
                    Message("{place} still counts as a copy", place=one.place),
                    Message("Its mark could not be removed."),
                )
        if unmounted:
            raise Failed(
                Message("{target} was restored, but not all of it could be mounted", target=self.target),
                Message("Left unmounted: {names}. The reasons are above.", names=names_text(unmounted, 5)),
            )

    def note_access(self, one: Restored) -> None:
        """Say again who may use it, as the files themselves still do. The note names the dataset that it is of."""
        if one.origin and one.origin.access:
            guid = int(copies.read_values(one.place, ("guid",)).get("guid", "0"))
            note = msgspec.structs.replace(one.origin.access, guid=guid)
            command.run(access_note.set_note_argv(one.place, note), timeout=SECONDS)

    def guids_of_keys(self, one: Restored) -> list[int]:
        """Under which guids the key of a folder may be stored: its original's, or that of one
        above it, the nearest first."""
        above = [part.original for part in self.parts if one.target.startswith(f"{part.target}/")]
        known = [guid for guid in (one.original, *reversed(above)) if guid]
        for name in names_above(one.origin.name) if one.origin else ():  # where that is still here
            guid = copies.read_values(name, ("guid",)).get("guid", "")
            known += [int(guid)] if guid else []
        return list(dict.fromkeys(known))

    def open_one(self, one: Restored, closed: list[str], unmounted: list[str], work: Work) -> None:
        """Mount a folder, or have it mounted once it is unlocked; ``closed`` collects those whose files
        cannot be reached, ``unmounted`` those that could not be mounted, with what is below them. Raises
        Failed where ZFS does not answer."""
        if one.is_volume:
            command.run(volmode.mode_argv(one.place), timeout=SECONDS)
            return
        if is_below(one.place, unmounted):  # whatever lies at the place of that one now is not where it belongs
            unmounted.append(one.place)
            work.note(Message("{place} is not mounted", place=one.place))
            return
        locked = copies.read_values(one.place, ("keystatus",)).get("keystatus") == "unavailable"
        if locked and one.raw and unlock_restored(one.place, self.guids_of_keys(one)):
            work.note(Message("{place} is unlocked with the key that this box stores", place=one.place))
            locked = False
        if locked or not self.mountpoint or is_below(one.place, closed):
            closed.append(one.place)
            command.run(mount.remember_argv(one.place), timeout=SECONDS)
            work.note(
                Message("{place} is locked: unlock it to see its files", place=one.place)
                if locked
                else Message("{place} is not mounted", place=one.place)
            )
            return
        try:
            mount.mount_new(one.place, work)
        except Failed as failed:
            if kstat.fails_for_all(failed, one.place):
                raise
            unmounted.append(one.place)
            work.note(Message("{name} could not be mounted: {what}", name=one.place, what=failed.said or failed.what))


def is_below(name: str, others: Collection[str]) -> bool:
    """Whether a dataset is one of these or lies below one."""
    return f"{name}/".startswith(tuple(f"{other}/" for other in others))


def create_argv(name: str, noted: dict[str, str] | None = None) -> list[str]:
    """The command that makes a folder to receive into, out of use, with the properties ``noted``."""
    off = {**copies.HOME_OFF, **QUIET, user_properties.COPY_OF: MARK, **(noted or {})}
    options = [word for key, value in off.items() for word in ("-o", f"{key}={value}")]
    return ["zfs", "create", *options, "--", name]


def token_of(name: str) -> str:
    """The token of the restore that receives into this folder; empty where it has another name."""
    found = names.RESTORE_FOLDER.fullmatch(name.rpartition("/")[2])
    return found[1] if found else ""


def is_there(name: str) -> bool:
    """Whether the folder to receive into exists, with its marks. Raises Failed where something else has its name."""
    values = copies.read_values(name, ("guid", user_properties.COPY_OF, user_properties.RESTORE))
    token = token_of(name)
    ours = bool(token) and values.get(user_properties.RESTORE) == token
    if values and not (ours and values.get(user_properties.COPY_OF) == MARK):
        raise Failed(
            Message("{name} is not a folder that a restore has made", name=name), Message("Nothing was changed in it.")
        )
    return bool(values)


def remove_stage(name: str, made: set[str], work: Work) -> None:
    """Destroy the folder to receive into, with ``made``, as far as that has arrived. Raises Failed where anything else
    lies in it."""
    if not is_there(name):
        return
    argv = ["zfs", "list", "-H", "-o", "name", "-r", "-t", "filesystem,volume", name]
    found = set(command.run(argv, timeout=SECONDS).stdout.splitlines())
    if other := sorted(one for one in found - {name} if one not in made or not was_received(one)):
        raise Failed(
            Message("{name} was not removed", name=name),
            Message("{other} is in it, and this restore has not made it.", other=other[0]),
        )
    command.run(["zfs", "destroy", "-r", "--", name], timeout=SECONDS_TO_DESTROY)
    work.note(Message("{name} was removed, with what had arrived in it", name=name))


def discard_part(name: str, made: Collection[str], work: Work) -> None:
    """Destroy what was received as ``name`` and is not to be kept, with those of ``made`` below it: they can be fetched
    again. It stays where anything else lies in it, and where ZFS does not destroy it: both are noted."""
    with noted_if_it_stays(name, work):
        argv = ["zfs", "list", "-H", "-o", "name", "-r", "-t", "filesystem,volume", name]
        found = command.run(argv, timeout=SECONDS).stdout.splitlines()
        if other := sorted(one for one in found if one not in made or not was_received(one)):
            raise Failed(Message("{other} is in it, and this restore has not made it.", other=other[0]))
        command.run(["zfs", "destroy", "-r", "--", name], timeout=SECONDS_TO_DESTROY)


@contextmanager
def noted_if_it_stays(name: str, work: Work) -> Iterator[None]:
    """Around the removal of ``name`` after a failure: one that does not work is noted, and hides no error of before."""
    try:
        yield
    except (Failed, Refused) as error:
        work.note(Message("{scratch} stays for now: {error}", scratch=name, error=explain_error(error)))


def was_received(name: str) -> bool:
    """Whether what lies in a folder to receive into was received there: folders of somebody
    could be moved to its name."""
    values = copies.read_values(name, (user_properties.COPY_OF, copies.RESUME))
    # An interrupted first receive may not have its properties yet, and has no snapshot.
    is_half_made = copies.RESUME in values and not any(list_snapshots.list_snapshots([name]))
    return is_half_made or is_continued(values.get(user_properties.COPY_OF, ""))


def has_arrived(name: str, guid: int) -> bool:
    return any(one.guid == guid for one in list_snapshots.list_snapshots([name]))
