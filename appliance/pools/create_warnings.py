"""What to know of a new pool before it is created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from appliance.facts.box import Facts
from appliance.formatting import size_text
from appliance.layout.choices import NOTABLY_UNEQUAL
from appliance.message import Message
from appliance.pools.vdevs import aux_rules

if TYPE_CHECKING:
    from appliance.pools.create import CreatePool


def pool_warnings(new: CreatePool, facts: Facts, shape: list[list[int]]) -> Iterator[str]:
    """What somebody should know before the pool is created. ``shape``: the sizes of the disks, by group."""
    every = [size for group in shape for size in group]
    if new.layout != "stripe" and max(every) - min(every) > NOTABLY_UNEQUAL * max(every):
        lost = sum(size - min(group) for group in shape for size in group)
        yield Message(
            "The disks differ in size. Each counts only as much as the smallest of its group, so {lost} "
            "would not be used.",
            lost=size_text(lost),
        )
    if new.layout == "stripe":
        yield Message("One failed disk loses everything in this pool. Keep a copy elsewhere.")
    if new.rest_mirror:
        yield Message(
            "{name} and {rest} are on the same disks: a failed disk has to be replaced in both.",
            name=new.name,
            rest=new.rest,
        )
    elif new.rest:
        yield Message(
            "One failed disk that {rest} is on loses everything in {rest}. Only for what you can do without.",
            rest=new.rest,
        )
    if new.layout == "raidz1" and max(every) >= 4 * 10**12:
        yield Message(
            "After one failure, rebuilding such large disks takes a day or more, and a second failure in "
            "that time loses everything. raidz2 survives it."
        )
    if new.ashift == 9:
        yield Message(
            "Sectors of 512 bytes (ashift 9) are slow on nearly every disk sold since 2011 and cannot be changed later."
        )
    found = [[disk for path in paths if (disk := facts.disk(path))] for paths in (new.logs, new.cache)]
    yield from aux_rules.aux_warnings(*found)
