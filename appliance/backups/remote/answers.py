"""What ``larder-peer`` answers, and what is missing there.
The other computer may say anything: every value is checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from appliance.backups import copies
from appliance.backups.remote import settings
from appliance.errors import Failed, Reason
from appliance.facts import user_properties
from appliance.facts.copy_mark import CopyMark, parse_copy_mark
from appliance.facts.remote import Remote
from appliance.message import Message

PROTOCOL = "larder-peer\t1"
END = "end"
VERSION = re.compile(r"zfs-kmod-(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")
OLDEST_ZFS = (0, 8)
RESTORES_SINCE = 2  # the version of the script that can send copies back
APPEND_SINCE = (2, 3, 2)  # the right receive:append
# The folder there hands these on to its copies, which are never mounted then.
ROOT_OFF = {"mountpoint": "none", "readonly": "on", "setuid": "off", "devices": "off", "exec": "off"}
VOLUME_OFF = {"readonly": "on"}
MOST_FREE = 2**63


def check_frame(said: str, host: str) -> list[str]:
    """The lines of an answer between its first and its last. Raises Failed where it is none, or not whole."""
    lines = said.splitlines()
    if not lines or lines[0] != PROTOCOL:
        raise Failed(
            Message("{host} does not answer as larder-peer does", host=host),
            Message(
                "Copy the script there again, and look at the line in authorized_keys: it has to begin with "
                "restrict,command=."
            ),
        )
    if lines[-1] != END:
        raise Failed(Message("The answer of {host} broke off", host=host), Message("Try again."))
    return lines[1:-1]


def number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0


# --- hello ------------------------------------------------------------------------------------------------------------
class Hello(msgspec.Struct, frozen=True):
    """``rights``: what ``zfs allow`` grants that user;
    ``root``: properties of the folder for copies, empty: there is none."""

    user: str = ""
    groups: tuple[str, ...] = ()
    aes: bool = False
    has_zfs: bool = False
    version: tuple[int, ...] = ()
    root: Mapping[str, str] = msgspec.field(default_factory=dict)
    features: Mapping[str, str] = msgspec.field(default_factory=dict)
    rights: frozenset[str] = frozenset()
    script: int = 1  # the version of larder-peer there

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def available(self) -> int:
        return min(number(self.root.get("available", "")), MOST_FREE)

    @property
    def is_encrypted(self) -> bool:
        return self.root.get("encryption", "off") != "off"

    @property
    def needed(self) -> tuple[str, ...]:
        receive = "receive:append" if self.version >= APPEND_SINCE else "receive"
        return ("create", "mount", receive, "userprop")

    @property
    def missing_rights(self) -> tuple[str, ...]:
        if self.user == "root":
            return ()
        return tuple(
            right for right in self.needed if right not in self.rights and right.partition(":")[0] not in self.rights
        )

    @property
    def may_send(self) -> bool:
        return self.user == "root" or "send" in self.rights

    @property
    def may_destroy(self) -> bool:
        """Whether that user could destroy copies or roll them back: more than is needed."""
        appended = "receive" in self.rights and self.version >= APPEND_SINCE
        return self.user == "root" or appended or bool({"destroy", "rollback"} & self.rights)


def parse_hello(said: str, host: str) -> Hello:
    """Raises Failed where it is not the answer of a larder-peer."""
    found: dict[str, list[str]] = {}
    for line in check_frame(said, host):
        word, _tab, rest = line.partition("\t")
        found.setdefault(word, []).append(rest)
    user, groups = (found.get("user") or [""])[0], tuple((found.get("groups") or [""])[0].split())
    versions = [match for line in found.get("version", ()) if (match := VERSION.match(line))]
    return Hello(
        user=user,
        groups=groups,
        aes=found.get("aes") == ["yes"],
        has_zfs="zfs" in found,
        version=tuple(int(part) for part in versions[0].groups() if part) if versions else (),
        root=pairs(found.get("root", ())),
        features={key.removeprefix("feature@"): value for key, value in pairs(found.get("pool", ())).items()},
        rights=frozenset(rights_of(found.get("allow", ()), user, groups)),
        script=number((found.get("script") or ["1"])[0]),
    )


def pairs(lines: list[str] | tuple[()]) -> dict[str, str]:
    rows = (line.split("\t") for line in lines)
    return {row[0]: row[1] for row in rows if len(row) == 2}


def rights_of(lines: list[str] | tuple[()], user: str, groups: tuple[str, ...]) -> Iterator[str]:
    """The rights in what ``zfs allow`` prints that hold for a user here and below: ``<tab>user anna create,mount``."""
    below, names = False, {("user", user), *(("group", group) for group in groups)}
    for line in lines:
        words = line.split()
        if line[:1] not in {"\t", " "}:
            # "Local permissions" do not hold for what is made below.
            below = line.startswith(("Local+Descendent", "Descendent"))
        elif below and len(words) >= 2 and (words[0] == "everyone" or (words[0], words[1]) in names):
            yield from words[-1].split(",")


def problems(hello: Hello, remote: Remote) -> Iterator[Reason]:
    """What is missing there before copies can be received, each with what to do."""
    at = {"host": remote.host, "root": remote.root, "user": hello.user or remote.user}
    if not hello.has_zfs:
        yield Reason("remote-no-zfs", "{host} has no ZFS. Install OpenZFS 0.8 or later there.", **at)
        return
    if hello.version[:2] < OLDEST_ZFS:
        yield Reason(
            "remote-zfs-old",
            "{host} has ZFS {version}. It needs 0.8 or later.",
            version=hello.version_text or Message("older than 0.8"),
            **at,
        )
        return
    if not hello.root:
        yield Reason(
            "remote-no-root", "{host} has no folder {root}. Create it there with the command on this page.", **at
        )
        return
    wrong = {key: value for key, value in ROOT_OFF.items() if hello.root.get(key) != value}
    if wrong:
        settings_text = " ".join(f"{key}={value}" for key, value in wrong.items())
        yield Reason(
            "remote-root-open",
            "Copies in {root} would be mounted or could be used. As root on {host}: zfs set {settings} {root}",
            settings=settings_text,
            **at,
        )
    if missing := hello.missing_rights:
        yield Reason(
            "remote-right-missing",
            "{user} may not do everything that copies need: {rights} is missing. As root on {host}: zfs "
            "allow -u {user} {rights} {root}",
            rights=",".join(missing),
            **at,
        )
    if not hello.available:
        yield Reason("remote-no-room", "{root} on {host} has no free space. Make room there.", **at)


def restore_problems(hello: Hello, remote: Remote) -> Iterator[Reason]:
    """What is missing there before copies can be brought back, each with what to do.
    Backups may go there all the same."""
    at = {"host": remote.host, "root": remote.root, "user": hello.user or remote.user}
    if not hello.has_zfs or not hello.root:
        yield Reason(
            "remote-no-root", "{host} has no folder {root}. Create it there with the command on this page.", **at
        )
        return
    if hello.script < RESTORES_SINCE:
        yield Reason(
            "remote-script-old",
            "The script larder-peer on {host} is too old to send copies back. Download it from the page of "
            "this computer and put it in place of the old one there.",
            **at,
        )
    if not hello.may_send:
        yield Reason(
            "remote-send-missing",
            "{user} may not send copies back: the right send is missing. As root on {host}: zfs allow -u "
            "{user} send {root}",
            **at,
        )


# --- list -------------------------------------------------------------------------------------------------------------
class RemoteCopy(msgspec.Struct):
    """What lies at one place there. ``snapshots``: transaction group, guid and short name, the oldest first."""

    values: dict[str, str] = msgspec.field(default_factory=dict)
    snapshots: list[tuple[int, int, str]] = msgspec.field(default_factory=list)
    key_sets: dict[int, str] = msgspec.field(default_factory=dict)  # ivsetguid by the guid of a snapshot
    # When it was made, and its size, by the same.
    details: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)

    @property
    def mark(self) -> CopyMark | None:
        return parse_copy_mark(self.values.get(user_properties.COPY_OF, ""))

    @property
    def is_sent_plain(self) -> bool:
        """Whether its first stream had no large or embedded blocks, so that none may follow (openzfs/zfs#6224)."""
        return self.values.get(user_properties.SENT) == "plain"

    @property
    def guids(self) -> tuple[int, ...]:
        return tuple(guid for _txg, guid, _short in self.snapshots)

    def created_at(self, guid: int) -> int:
        """When the snapshot was made, in seconds since 1970; 0 where that was not said."""
        return self.details.get(guid, (0, 0))[0]

    def size_of(self, guid: int) -> int:
        return self.details.get(guid, (0, 0))[1]

    @property
    def guid(self) -> int:
        """Of the copy itself, as ``tree`` says it."""
        return number(self.values.get("guid", ""))

    @property
    def is_volume(self) -> bool:
        return self.values.get("type") == "volume"

    @property
    def written(self) -> int:
        return number(self.values.get("written", ""))

    @property
    def is_partial(self) -> bool:
        """Whether an interrupted receive has left something."""
        return bool(self.values.get(copies.RESUME))

    @property
    def open_properties(self) -> dict[str, str]:
        """What would have to be set so that nobody uses the copy; empty where all is."""
        off = dict(VOLUME_OFF if self.is_volume else ROOT_OFF)
        if self.values.get("canmount") == "off":
            off.pop("mountpoint", None)
        return {key: value for key, value in off.items() if self.values.get(key) != value}


def parse_list(said: str, remote: Remote) -> dict[str, RemoteCopy]:
    """By their names below the folder for copies, the copies that are there. Raises Failed."""
    found: dict[str, RemoteCopy] = {}
    numbers: dict[str, dict[str, int]] = {}
    for row in (line.split("\t") for line in check_frame(said, remote.host)):
        if "@" in row[0]:
            if len(row) == 3:
                numbers.setdefault(row[0], {})[row[1]] = number(row[2])
            continue
        name = name_below(row[0], remote.root)
        if name is None or len(row) != 4 or row[2] == "-" or (":" in row[1] and row[3] != "local"):
            continue
        found.setdefault(name, RemoteCopy()).values[row[1]] = row[2]
    for full, values in numbers.items():
        dataset, _at, short = full.partition("@")
        name = name_below(dataset, remote.root)
        if name in found and values.get("guid"):
            found[name].snapshots.append((values.get("createtxg", 0), values["guid"], short))
            if values.get("creation"):
                found[name].details[values["guid"]] = (values["creation"], values.get("referenced", 0))
            if values.get("ivsetguid"):
                found[name].key_sets[values["guid"]] = str(values["ivsetguid"])
    for one in found.values():
        one.snapshots.sort()
    return found


def name_below(dataset: str, root: str) -> str | None:
    """The name of a copy; None for the folder itself, for what lies elsewhere, and for names that no backup gave."""
    name = dataset.removeprefix(f"{root}/")
    return name if name != dataset and settings.REMOTE_NAME.fullmatch(name) else None
