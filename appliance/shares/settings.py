"""What a dataset asks to be shared as: the JSON of its property ``larder:share``, a part for each protocol.

The property belongs to the dataset and travels with it, so it may come with disks from anywhere: decoding validates
every field by its grammar. What is read here is a wish; it is served only where somebody on this box has agreed
(``approved.py``), whether the setting was made here, received with the data, or inherited.

A dataset below a shared one inherits its parts, and each becomes a share of its own: it is another file system, with
other snapshots, and NFS does not look into it from outside. Its name is that of the share above it and the way down,
joined by hyphens: below ``photos``, ``tank/photos/2024/may`` becomes ``photos-2024-may``. Over SMB it is hidden, since
it is also seen as a folder in the share above. Time Machine is not inherited: its limit is that of one file system.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeVar

import msgspec

from appliance import names
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.message import Message, join_messages
from appliance.shares import nfs_export_rules
from appliance.shares.iscsi.part import Iscsi

Protocol = Literal["smb", "nfs", "afp"]
PROTOCOLS: tuple[Protocol, ...] = ("smb", "nfs", "afp")
SPOKEN: dict[str, str] = {"smb": "SMB", "nfs": "NFS", "afp": "AFP"}
ISCSI = "iscsi"  # serves volumes, not folders
CALLED = {**SPOKEN, ISCSI: "iSCSI"}
MOST_PEOPLE = 200
NOBODY = "larder-nobody"  # in the place of people who are gone: an empty name or list would let more in
LEAST_TIME_MACHINE = 10**9  # bytes: a limit below that of one backup helps nobody


def check_users(write: tuple[str, ...], read: tuple[str, ...]) -> None:
    """Refuse names of neither users nor groups, and names in both lists."""
    for one in (*write, *read):
        names.user_or_group(one, field="people")
    if len(write) + len(read) > MOST_PEOPLE:
        raise Refused(
            Reason(
                "share-users-too-many",
                "Name at most {count} users and groups. Make a group of them.",
                field="people",
                count=MOST_PEOPLE,
            )
        )
    if twice := sorted(set(write) & set(read)):
        raise Refused(
            Reason(
                "share-user-twice",
                "{name} is chosen for reading and for changing. Choose one.",
                field="people",
                name=twice[0],
            )
        )


def time_machine_limit(size: int) -> None:
    if size and not LEAST_TIME_MACHINE <= size < 2**62:
        raise Refused(
            Reason(
                "time-machine-limit-too-small",
                "The limit for Time Machine must be at least 1 GB.",
                field="time_machine",
            )
        )


class Smb(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A share for Windows, Macs and phones. ``write`` and ``read`` name accounts, or groups as ``@group``."""

    name: str
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    guest: Literal["no", "read", "write"] = "no"
    hidden: bool = False
    recycle: bool = False
    exact_case: bool = False
    mac: bool = True
    time_machine: int = 0  # bytes that backups may grow to; 0: it takes no backups
    previous: bool = True
    encrypt: bool = False

    def __post_init__(self) -> None:
        names.check_share_name(self.name, field="name")
        if "  " in self.name:
            raise Refused(
                Reason(
                    "share-name-with-two-spaces",
                    "Samba allows only one space in a row in a share's name.",
                    field="name",
                )
            )
        check_users(self.write, self.read)
        time_machine_limit(self.time_machine)


class Nfs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An export for these networks and hosts. ``root``: their root is root here too (no_root_squash).

    ``everybody_as``: the account as which everybody counts who mounts it (all_squash); empty: each user by number.
    """

    hosts: tuple[str, ...]
    write: bool = True
    root: bool = False
    sync: bool = True
    everybody_as: str = ""

    def __post_init__(self) -> None:
        nfs_export_rules.check_clients(self.hosts)
        if self.everybody_as and self.everybody_as != NOBODY:
            names.check_user_name(self.everybody_as, field="everybody_as")
        if self.everybody_as and self.root:
            raise Refused(
                Reason(
                    "nfs-root-and-one-user",
                    "Root cannot stay root while everybody counts as one user. Choose one of the two.",
                    field="root",
                )
            )


class Afp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A volume for older Macs."""

    name: str
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    time_machine: int = 0  # bytes

    def __post_init__(self) -> None:
        names.check_share_name(self.name, field="name")
        check_users(self.write, self.read)
        time_machine_limit(self.time_machine)


Part = Smb | Nfs | Afp


def lays_open(part: Part | Iscsi | None) -> bool:
    """Whether other computers may do everything with all files of the folder, whatever the rules of people say."""
    return part.open_to_all if isinstance(part, Iscsi) else isinstance(part, Nfs) and part.root


class ShareSetting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All of a dataset's sharing; a protocol that is not there is off.
    ``iscsi`` is for volumes and is not inherited."""

    smb: Smb | None = None
    nfs: Nfs | None = None
    afp: Afp | None = None
    iscsi: Iscsi | None = None

    def part(self, protocol: Protocol) -> Part | None:
        found: Part | None = getattr(self, protocol)
        return found

    def with_part(self, protocol: Protocol, part: Part | None) -> ShareSetting:
        """The setting with that protocol's part in place of what it has; None switches it off."""
        return msgspec.structs.replace(self, **{protocol: part})

    @property
    def anything(self) -> bool:
        return self.iscsi is not None or any(self.part(protocol) for protocol in PROTOCOLS)

    @property
    def people(self) -> frozenset[str]:
        """Whom it names, over any protocol: accounts, and groups as ``@group``."""
        named = frozenset(who for one in (self.smb, self.afp) if one for who in (*one.write, *one.read))
        return named | ({self.nfs.everybody_as} if self.nfs and self.nfs.everybody_as else frozenset()) - {NOBODY}

    @property
    def limit(self) -> int:
        """Bytes that Time Machine may fill, over whichever protocol; 0: it is not for Time Machine."""
        return max((one.time_machine for one in (self.smb, self.afp) if one), default=0)

    def without(self, who: str, heir: str = "") -> ShareSetting:
        """The setting without somebody (an account or ``@group``), whose place an heir may take."""
        nfs = self.nfs
        if nfs and nfs.everybody_as == who:
            nfs = msgspec.structs.replace(nfs, everybody_as=heir or NOBODY)
        smb, afp = replace_user(self.smb, who, heir), replace_user(self.afp, who, heir)
        return msgspec.structs.replace(self, smb=smb, nfs=nfs, afp=afp)

    def text(self) -> str:
        """As the property keeps it."""
        return msgspec.json.encode(self).decode()


Listed = TypeVar("Listed", Smb, Afp)


def describe_parts(setting: ShareSetting) -> Iterator[str]:
    """Each protocol that a setting switches on, with the name of its share and who may use it."""
    for protocol, called in CALLED.items():
        part: Part | Iscsi | None = getattr(setting, protocol)
        if part is None:
            continue
        name = getattr(part, "name", "")
        served = Message("{protocol} as {name}", protocol=called, name=name) if name else called
        who = list(users_of(part))
        yield Message("{share} for {users}", share=served, users=join_messages(who, ", ")) if who else served


def users_of(part: Part | Iscsi) -> Iterator[str]:
    """Who may use a part: users and groups, computers, and guests; those who can only read are marked."""
    if isinstance(part, Iscsi):
        yield from part.initiators
    elif isinstance(part, Nfs):
        yield from part.hosts if part.write else map(only_reading, part.hosts)
    else:
        yield from part.write
        yield from map(only_reading, part.read)
        if isinstance(part, Smb) and part.guest != "no":
            yield Message("guests") if part.guest == "write" else only_reading(Message("guests"))


def only_reading(who: str) -> str:
    return Message("{who} (read only)", who=who)


def replace_user(part: Listed | None, who: str, heir: str) -> Listed | None:
    """A part with an heir in the place of somebody; who may change is not also listed as one who reads."""
    if part is None:
        return None
    write = tuple(dict.fromkeys(one for name in part.write if (one := heir if name == who else name)))
    read = tuple(dict.fromkeys(one for name in part.read if (one := heir if name == who else name)))
    return msgspec.structs.replace(part, write=write, read=tuple(one for one in read if one not in write))


def setting_of(dataset: Dataset) -> ShareSetting | None:
    """What the dataset asks for; None where it asks for nothing or for something that Larder could not have written."""
    if dataset.share_source not in {"local", "received", "inherited"}:
        return None
    found = parse_setting(dataset.share)
    return inherited_setting(found, dataset) if found and dataset.share_source == "inherited" else found


def parse_setting(text: str) -> ShareSetting | None:
    """The setting in a property's text; None where it is none that Larder could have written."""
    try:
        return msgspec.json.decode(text, type=ShareSetting) if text else None
    except (msgspec.MsgspecError, Refused, RecursionError):
        return None


def inherited_setting(setting: ShareSetting, dataset: Dataset) -> ShareSetting | None:
    """An inherited setting with names of the dataset's own, without the parts for which such a name is none."""
    above = f"{dataset.share_from}/"
    if not dataset.share_from or not dataset.name.startswith(above):
        return None
    way = dataset.name.removeprefix(above).replace("/", "-")
    smb, afp = inherited_part(setting.smb, way), inherited_part(setting.afp, way)
    return ShareSetting(smb=smb and msgspec.structs.replace(smb, hidden=True), nfs=setting.nfs, afp=afp)


def inherited_part(part: Listed | None, way: str) -> Listed | None:
    """The part under a name that ends in the way down; None where that is no name, being too long for example."""
    try:
        return part and msgspec.structs.replace(part, name=f"{part.name}-{way}", time_machine=0)
    except Refused:
        return None


def is_servable(dataset: Dataset) -> bool:
    """Whether it is mounted where a daemon's file can name the place: a mountpoint comes with disks from anywhere."""
    try:
        names.served_path(dataset.mountpoint)
    except Refused:
        return False
    return dataset.can_mount


def wanted_shares(facts: Facts, protocol: Protocol) -> Iterator[tuple[Dataset, Part]]:
    """The datasets to be served over a protocol with their settings. Of two shares of one name the first that has it as
    its own is served, so that what is inherited never takes a name away."""
    taken: set[str] = set()
    asking = [(one, part) for one in facts.datasets if is_servable(one) and (part := part_of(one, protocol))]
    for dataset, part in sorted(asking, key=lambda pair: pair[0].share_source == "inherited"):
        name = getattr(part, "name", dataset.mountpoint).lower()
        if name not in taken:
            taken.add(name)
            yield dataset, part


def part_of(dataset: Dataset, protocol: Protocol) -> Part | None:
    setting = setting_of(dataset)
    return setting.part(protocol) if setting else None
