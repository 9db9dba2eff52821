"""How Larder left each of its targets in the kernel since the box started, as fingerprints in a file of root's.

The file is in memory and ends with the kernel's own tree. A target that is no longer as its fingerprint says was
changed by hand. The secrets of CHAP are a part of what is hashed, and web and worker see the result, so it is
keyed by a number that only root can read. Without the file, as after an update, nothing counts as changed by hand
until Larder serves something.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from appliance.errors import Failed
from appliance.message import Message
from appliance.shares.iscsi.configfs import Tree
from appliance.shares.iscsi.part import PREFIX
from appliance.shares.iscsi.reconcile import is_inside, says_read_only
from appliance.system import atomic_file, locks, paths

LOCK = "iscsi targets"
FILE = "left"
CHANGING = ""  # in place of a fingerprint: Larder has begun to change the target, and may have been interrupted
VARYING = ("/dynamic_sessions", "/info")  # who is connected, and how busy a disk is


class LeftTargets(msgspec.Struct, frozen=True):
    """``key`` is a secret number; ``targets`` are fingerprints by the targets' names."""

    key: str
    targets: dict[str, str]


@contextmanager
def hold_targets(patience: float = float("inf")) -> Iterator[None]:
    """Keep others from changing targets or comparing them with their fingerprints. Not to be taken twice.

    Raises Failed where others hold them for more than ``patience`` seconds: the kernel may hang over a target.
    """
    until = time.monotonic() + patience

    def wait(_name: str) -> None:
        if time.monotonic() > until:
            raise Failed(Message("The iSCSI targets are being changed now"))

    with locks.hold_locks([LOCK], wait):
        yield


def read_left() -> LeftTargets | None:
    """What is known; None where nothing has been served since the start, or an older Larder did it."""
    try:
        found = json.loads((paths.TARGETS / FILE).read_text())
        return msgspec.convert(found, LeftTargets)
    except (OSError, ValueError, RecursionError, msgspec.ValidationError):
        return None


def store_left(left: LeftTargets) -> None:
    """Raises OSError."""
    paths.TARGETS.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A name may hold any bytes, which JSON of the standard library keeps.
    atomic_file.write_atomically(paths.TARGETS / FILE, json.dumps(msgspec.to_builtins(left)).encode())


def served_names(tree: Tree) -> set[str]:
    """The names of Larder's targets in the kernel, also of those that somebody made by hand under such a name."""
    paths_of = (one for one in tree.folders if one.count("/") == 1 and one.startswith(f"iscsi/{PREFIX}"))
    return {one.partition("/")[2] for one in paths_of}


def take_fingerprint(name: str, tree: Tree, key: str) -> str:
    """64 hexadecimal digits of all that the tree has of a target and of the disks in it; also
    of one that is not there."""
    path = f"iscsi/{name}"
    links = {link: to for link, to in tree.links.items() if is_inside(link, [path])}
    inside = [path, *(to for to in links.values() if to.startswith("core/"))]
    values = {one: value for one, value in tree.values.items() if is_inside(one, inside)}
    parts = (
        name,
        sorted(one for one in tree.folders if is_inside(one, inside)),
        sorted(links.items()),
        sorted((one, value) for one, value in values.items() if not one.endswith(VARYING)),
        sorted(one for one, value in values.items() if one.endswith("/info") and says_read_only(value)),
    )
    return hmac.new(bytes.fromhex(key), json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def find_changed(tree: Tree, left: LeftTargets | None) -> dict[str, str]:
    """The targets that are not as Larder left them, with their fingerprints now; none where nothing is known."""
    if left is None:
        return {}
    found = {}
    for name in sorted(served_names(tree) | set(left.targets)):
        now = take_fingerprint(name, tree, left.key)
        if left.targets.get(name) not in {now, CHANGING}:
            found[name] = now
    return found


def begin_changes(names: Iterable[str]) -> None:
    """Note that these targets are changed by Larder now: whatever becomes of them until
    ``note_left`` is its own work."""
    left = read_left() or LeftTargets(secrets.token_hex(32), {})
    begun = left.targets | dict.fromkeys(names, CHANGING)
    if begun != left.targets:
        store_left(LeftTargets(left.key, begun))


def note_left(tree: Tree, *, but: Iterable[str] = ()) -> None:
    """Note how Larder leaves all targets, ``but`` those that it leaves to somebody who changed them by hand."""
    left = read_left() or LeftTargets(secrets.token_hex(32), {})
    kept = set(but)
    now = {name: take_fingerprint(name, tree, left.key) for name in sorted(served_names(tree) - kept)}
    now |= {name: one for name, one in left.targets.items() if name in kept}
    if now != left.targets:
        store_left(LeftTargets(left.key, now))
