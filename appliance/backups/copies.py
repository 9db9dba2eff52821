"""Copies as they are at the destination: reading them, their mark ``larder:copy-of``, and what keeps them out of use.

A copy is never mounted, shared or written: it is received with ``canmount=off readonly=on`` and without the properties
of its source, which could name any mountpoint (zfs-receive(8) says why that is dangerous). Each property is read back
before a run counts, since ZFS can leave one out and still end with status 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from appliance import command
from appliance.backups.match import Copy, Point, Token
from appliance.backups.origin import origin_of
from appliance.backups.tasks import HOME
from appliance.errors import Failed
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark, parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.message import Message
from appliance.operation import Work
from appliance.snapshots import bookmarks
from appliance.zfs import list_snapshots

OFF = {
    "canmount": "off",
    "mountpoint": "none",
    "readonly": "on",
    "setuid": "off",
    "devices": "off",
    "exec": "off",
    "sharenfs": "off",
    "sharesmb": "off",
}
VOLUME_OFF = {"readonly": "on", "volmode": "none"}
HOME_OFF = {
    key: value for key, value in OFF.items() if key != "readonly"
}  # a read-only parent would be inherited at a restore
RESUME = "receive_resume_token"  # the property of a dataset at which a receive was interrupted
TOKEN_LINE = re.compile(r"^\s*(\w+) = (\S.*)$", re.MULTILINE)
SECONDS = 120


def mark_text(dataset: Dataset) -> str:
    """The mark of a copy of this dataset. Encrypted datasets are sent as they are, so the
    destination never has the key."""
    return CopyMark(dataset.guid, dataset.encryption != "off").text


def properties_of(dataset: Dataset) -> dict[str, str]:
    """What has to be set on a copy of this dataset."""
    off = VOLUME_OFF if dataset.kind == "volume" else OFF
    noted = {user_properties.COPY_OF: mark_text(dataset), user_properties.ORIGIN: origin_of(dataset).text}
    return {**off, **acl_of(dataset), **noted}


def acl_of(dataset: Dataset) -> dict[str, str]:
    """What has to be set where a dataset arrives, so that its files keep their access lists:
    without it ZFS shows none."""
    found = dataset.properties.get("acltype")
    return {"acltype": "posix"} if found and found.value == "posix" and dataset.kind == "filesystem" else {}


def names_of(root: str, dataset: Dataset, tree: Iterable[Dataset], facts: Facts) -> dict[int, str]:
    """Where the copy of each dataset of the tree is or will be, by the dataset's guid.

    A copy is found by its mark, so one whose source was renamed continues. A new one whose name is taken gets a number.
    """
    below = facts.below(root)
    found = {mark.guid: one.name for one in reversed(below) if (mark := parse_copy_mark(one.copy_of))}
    return names_among(root, dataset, tree, found, {one.name for one in below})


def names_among(
    root: str,
    dataset: Dataset,
    tree: Iterable[Dataset],
    found: Mapping[int, str],
    taken: set[str],
    spell: Callable[[str], str] = str,
) -> dict[int, str]:
    """The same among copies that were ``found``, by the guid of their original.
    ``spell`` makes the last part of a name one that can be given there."""
    tree = list(tree)
    names: dict[int, str] = {}
    for one in tree:
        name = found.get(one.guid)
        if name is None:
            above = one.name.rpartition("/")[0]
            parent = next((names[up.guid] for up in tree if up.name == above and up.guid in names), "")
            wanted = root if one.guid == dataset.guid else f"{parent or root}/{spell(one.name.rpartition('/')[2])}"
            name = wanted if one.guid == dataset.guid else free_name(wanted, taken)
            taken.add(name)
        names[one.guid] = name
    return names


def free_name(wanted: str, taken: set[str]) -> str:
    number, name = 2, wanted
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def is_copy(dataset: Dataset) -> bool:
    """Whether it is a copy, also one that was set aside: marked, and in the folder that copies lie in."""
    parts = dataset.name.split("/")
    return parse_copy_mark(dataset.copy_of) is not None and len(parts) > 2 and parts[1] == HOME


def lock_of(copy: str) -> str:
    """The lock that keeps a copy, or one below it, from being run to, compared and restored from at once."""
    return f"the copy {'/'.join(copy.split('/')[:3])}"


def missing_home(root: str, facts: Facts) -> list[str]:
    """The command that makes the folder that copies lie in; empty where there is one."""
    home = root.rpartition("/")[0]
    if facts.dataset(home) is not None:
        return []
    mark = CopyMark(0, raw=False).text  # of nothing: it counts as Larder's own
    options = [
        word for key, value in {**HOME_OFF, user_properties.COPY_OF: mark}.items() for word in ("-o", f"{key}={value}")
    ]
    return ["zfs", "create", *options, "--", home] if home.endswith(f"/{HOME}") else []


# --- reading ----------------------------------------------------------------------------------------------------------
def read_points(dataset: str) -> list[Point]:
    """The moments of the source that a copy can continue from, snapshots before bookmarks. Raises Failed."""
    snapshots = [Point(one.name, one.guid) for one in list_snapshots.list_snapshots([dataset])]
    return snapshots + [Point(one.name, one.guid) for one in bookmarks.read_bookmarks([dataset])]


def read_values(dataset: str, wanted: Iterable[str]) -> dict[str, str]:
    """Properties of one dataset, user properties only where set on itself; empty where it does not exist.
    Raises Failed."""
    argv = ["zfs", "get", "-H", "-p", "-o", "property,value,source", ",".join(wanted), dataset]
    try:
        lines = command.run(argv, timeout=SECONDS).stdout.splitlines()
    except command.CommandFailed as failed:
        if "does not exist" in failed.said:
            return {}
        raise
    rows = (line.split("\t") for line in lines)
    return {
        row[0]: row[1] for row in rows if len(row) == 3 and row[1] != "-" and (":" not in row[0] or row[2] == "local")
    }


def read_copy(name: str) -> Copy:
    """A copy as it is now. Raises Failed."""
    values = read_values(name, ("guid", "written", RESUME, user_properties.COPY_OF))
    if not values:
        return Copy(name)
    token = values.get(RESUME, "")
    snapshots = list(list_snapshots.list_snapshots([name]))
    return Copy(
        name,
        exists=True,
        mark=parse_copy_mark(values.get(user_properties.COPY_OF, "")),
        guids=tuple(one.guid for one in snapshots),
        names=tuple(one.short for one in snapshots),
        written=int(values.get("written", "0") or 0),
        token=read_token(token) if token else None,
    )


def read_token(text: str) -> Token:
    """What a token says, read by ``zfs send -t`` of the source's box. One that cannot be read fits nothing."""
    result = command.run(["zfs", "send", "-n", "-v", "-t", text], timeout=SECONDS, accept=range(256))
    return parse_token(text, result.stdout + result.stderr)


def parse_token(text: str, said: str) -> Token:
    """The token in what ``zfs send -nvt`` prints before its estimate."""
    values = dict(TOKEN_LINE.findall(said))

    def number(key: str) -> int:
        try:
            return int(values.get(key, "0"), 0)
        except ValueError:
            return 0

    name, raw = values.get("toname", ""), number("rawok") == 1
    return Token(text, number("toguid"), name, number("fromguid"), raw=raw, done=number("bytes"))


def settle(work: Work, name: str, wanted: dict[str, str]) -> None:
    """Set what is not set on a copy, and read it back. Raises Failed where it is still different."""
    differs = differing(name, wanted)
    if differs:
        work.note(Message("Set on {name}: {sorted}.", name=name, sorted=", ".join(sorted(differs))))
        pairs = [f"{key}={value}" for key, value in differs.items()]
        command.run(["zfs", "set", "-u", *pairs, name], timeout=SECONDS)
    if left := differing(name, wanted):
        raise Failed(
            Message("{name} was not kept out of use", name=name),
            Message("{sorted} could not be set.", sorted=", ".join(sorted(left))),
        )


def differing(name: str, wanted: dict[str, str]) -> dict[str, str]:
    """Which of the properties of a dataset are not as they have to be."""
    values = read_values(name, wanted)
    return {key: value for key, value in wanted.items() if values.get(key) != value}
