"""Targets of Larder's that somebody changed by hand: found, and left alone until somebody decides.

A target that differs from its setting only because Larder has not changed it yet, or could not, is none of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

import msgspec

from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.shares.iscsi import chap, configfs, fingerprints
from appliance.shares.iscsi.configfs import Tree
from appliance.shares.iscsi.differences import TargetDifference, find_differences
from appliance.shares.iscsi.part import LONGEST_INITIATOR, PREFIX, device_of
from appliance.shares.iscsi.sessions import tidy_name
from appliance.shares.iscsi.targets import Target, wanted_targets

PLAIN = re.compile(rf"{re.escape(PREFIX)}[!-.0-~]+")


class TargetEdit(msgspec.Struct, frozen=True):
    """A target that was changed by hand. ``seen`` is its fingerprint, also of one that was deleted."""

    key: str
    name: str  # as it may be shown
    seen: str
    volume: str = ""  # empty where it is of no volume that Larder serves
    differences: tuple[TargetDifference, ...] = ()

    @property
    def writable(self) -> bool:
        """Whether Larder can be told of it. Other names were not made by anything that follows the standard."""
        return is_plain(self.name)


def is_plain(name: str) -> bool:
    """Whether a target has a name that can be passed on as it is."""
    return len(name) <= LONGEST_INITIATOR and PLAIN.fullmatch(name) is not None


def key_of(name: str) -> str:
    """A short text for a target whose name may hold anything."""
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:16]


def find_edits(wanted: Iterable[Target], tree: Tree) -> dict[str, TargetEdit]:
    """The manual changes, by the targets' names, against what Larder would serve.
    ``fingerprints.hold_targets`` is held."""
    targets = {one.iqn: one for one in wanted}
    found = {}
    for name, seen in fingerprints.find_changed(tree, fingerprints.read_left()).items():
        target = targets.get(name)
        if differences := find_differences(name, target, tree):
            volume = target.device.removeprefix(device_of("")) if target else ""
            found[name] = TargetEdit(key_of(name), tidy_name(name), seen, volume, differences)
    return found


def read_edits(facts: Facts, *, patience: float = float("inf")) -> dict[str, TargetEdit]:
    """The manual changes now, by the targets' names;
    ``facts`` have the volumes that somebody agreed to share. Root only.

    Raises Failed where targets are being changed for more than ``patience`` seconds.
    """
    wanted, _left = wanted_targets(facts, chap.read_secrets)
    with fingerprints.hold_targets(patience):
        return find_edits(wanted, configfs.read_tree())


def changed_by_hand(names: Iterable[str]) -> Refused:
    return Refused(
        *(
            Reason(
                "target-changed-by-hand",
                "{target} was changed by hand, so Larder does not change it. The Manual changes page shows "
                "the differences and what you can do.",
                target=tidy_name(one),
            )
            for one in sorted(names)
        )
    )


def changed_again() -> Refused:
    return Refused(
        Reason(
            "target-changed-again",
            "The target was changed again since you looked. Look at the differences as they are now.",
        )
    )


def refuse_edits(names: Collection[str], edits: Collection[str]) -> None:
    """Raises Refused where one of these targets was changed by hand."""
    if found := set(names) & set(edits):
        raise changed_by_hand(found)
