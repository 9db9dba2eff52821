"""What a folder is shared as because of the one above it: where it is created there, and
where it moves there or away."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import list_with_and
from appliance.message import Message, join_messages
from appliance.operation import Step, Work
from appliance.shares import publish, teardown
from appliance.shares.settings import PROTOCOLS, SPOKEN, Part, Protocol, ShareSetting, describe_parts, setting_of

OWN = frozenset({"local", "received"})  # property sources of a setting that is set on the dataset itself


def source_of(dataset: Dataset) -> str:
    """The dataset whose setting this one passes on to those below it."""
    return dataset.share_from if dataset.share_source == "inherited" else dataset.name


def setting_below(parent: Dataset | None, name: str) -> ShareSetting:
    """What a folder of that full name asks for in ``parent`` where it has no setting of its own."""
    if parent is None or setting_of(parent) is None:
        return ShareSetting()
    below = replace(parent, name=name, share_source="inherited", share_from=source_of(parent))
    return setting_of(below) or ShareSetting()


def serve_new_step(parent: Dataset | None, name: str) -> list[Step]:
    """Serve a folder that was just created, where it inherits a share; no step where it does not.

    The folder is there whatever becomes of its shares, so trouble with them is only noted.
    """

    def act(work: Work) -> None:
        publish.republish_quietly(work)

    if not setting_below(parent, name).anything:
        return []
    return [
        Step(
            "serve", Message("Share it like the folder above it"), "\n".join(teardown.publish_commands()), act, (name,)
        )
    ]


class ShareMove(msgspec.Struct, frozen=True):
    """What a folder inherits before and after it moves. ``folder`` is the one that moves, or the first below it that
    inherits from outside; ``now_from`` and ``then_from`` are the datasets that have the settings, and only what is in
    use counts: somebody on this box has to have approved it."""

    folder: str
    now: ShareSetting
    then: ShareSetting
    now_from: str
    then_from: str
    now_in_use: bool
    then_in_use: bool
    places: frozenset[str]  # where it and those below it that inherit the same are mounted now

    def changed_parts(self) -> Iterator[tuple[Protocol, Part]]:
        """What it will be served as that it is not now; a new name alone does not count."""
        for protocol in PROTOCOLS:
            part, before = self.then.part(protocol), self.now.part(protocol) if self.now_in_use else None
            if part and (before is None or without_name(part) != without_name(before)):
                yield protocol, part

    def renamed_parts(self) -> Iterator[tuple[Protocol, str]]:
        """The protocols over which only the name of its share changes, with the new name."""
        changed = dict(self.changed_parts())
        for protocol in PROTOCOLS:
            part, before = self.then.part(protocol), self.now.part(protocol)
            name = getattr(part, "name", "")
            if part and before and protocol not in changed and name != getattr(before, "name", ""):
                yield protocol, name

    @property
    def lost(self) -> list[Protocol]:
        """The protocols over which it is served now and no longer after the move."""
        if not self.now_in_use:
            return []
        then = self.then if self.then_in_use else ShareSetting()
        return [one for one in PROTOCOLS if self.now.part(one) and not then.part(one)]

    @property
    def gains_parts(self) -> bool:
        """Whether it is shared in another way after the move."""
        return any(self.changed_parts())

    def describe(self) -> Iterator[str]:
        """What changes, in sentences; empty where nothing does."""
        changed = dict(self.changed_parts())
        if changed and self.then_in_use:
            yield Message(
                "In its new place {folder} is shared like {source}: {shares}.",
                folder=self.folder,
                source=self.then_from,
                shares=join_messages(list(describe_parts(ShareSetting(**changed))), "; "),  # type: ignore[arg-type]
            )
            for protocol, part in changed.items():
                yield from publish.SERVING[protocol].warnings(part)
        elif changed:
            yield Message(
                "{source} has share settings that are not in use now. Once they are, {folder} is shared like it.",
                source=self.then_from,
                folder=self.folder,
            )
        if self.lost:
            yield Message(
                "{folder} is no longer shared over {protocols}: it inherits that from {source}.",
                folder=self.folder,
                protocols=list_with_and([SPOKEN[one] for one in self.lost]),
                source=self.now_from,
            )
        if self.then_in_use:
            for protocol, name in self.renamed_parts():
                yield Message(
                    "The {protocol} share of {folder} gets the name {name}.",
                    protocol=SPOKEN[protocol],
                    folder=self.folder,
                    name=name,
                )
        if len(self.places) > 1 and (self.lost or changed):
            yield Message("The same goes for the folders below it that have no share settings of their own.")


def without_name(part: Part) -> Part:
    return part if not hasattr(part, "name") else replace(part, name="x")


def inheriting_folders(dataset: Dataset, facts: Facts) -> list[Dataset]:
    """The folders, from this one on down, that take their share setting from above it."""
    if dataset.share_source in OWN:
        return []
    family = [one for one in facts.datasets if one.name == dataset.name or one.name.startswith(f"{dataset.name}/")]
    own = tuple(f"{one.name}/" for one in family if one.share_source in OWN)
    return [one for one in family if one.can_mount and not f"{one.name}/".startswith(own)]


def is_in_use(source: str, facts: Facts) -> bool:
    """Whether the setting of that dataset is served anywhere: of a setting that somebody here approved something is."""
    places = {one.mountpoint for one in facts.datasets if source in {one.name, one.share_from}}
    return any(share.path in places for share in facts.shares)


def find_move(dataset: Dataset, parent: Dataset | None, target: str, facts: Facts) -> ShareMove | None:
    """What a move to the full name ``target`` in ``parent`` changes about shares; None where it can change nothing."""
    folders = inheriting_folders(dataset, facts)
    if not folders:
        return None
    first = folders[0]
    now = setting_of(first) or ShareSetting()
    then = setting_below(parent, target + first.name.removeprefix(dataset.name))
    then_from = source_of(parent) if parent else ""
    return ShareMove(
        folder=first.name,
        now=now,
        then=then,
        now_from=first.share_from,
        then_from=then_from,
        now_in_use=now.anything and is_in_use(first.share_from, facts),
        then_in_use=then.anything and is_in_use(then_from, facts),
        places=frozenset(one.mountpoint for one in folders),
    )
