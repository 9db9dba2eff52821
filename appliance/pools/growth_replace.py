"""More room by larger disks in the place of those of today."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from appliance.facts.box import Pool
from appliance.formatting import disk_size, size_text
from appliance.layout import growth as layout_growth
from appliance.layout.growth import DataGroup
from appliance.message import Message
from appliance.pools.base import pool_trouble
from appliance.pools.growth_disks import usual_disk
from appliance.pools.growth_plan import members_of
from appliance.pools.growth_risk import replacing_risk, single_disk_hindrance
from appliance.pools.growth_way import GrowthFacts, Way
from appliance.pools.growth_words import UNKNOWN, added_bytes, protection_text
from appliance.pools.rebuild_estimate import estimate_rebuild
from appliance.pools.vdevs.groups import data_groups
from appliance.zfs.vdev_tree import partition_bytes


def replace_disks(facts: GrowthFacts, groups: Sequence[DataGroup]) -> Way:
    """Replace every disk that is smaller than the new ones, one after the other."""
    pool, size = facts.pool, facts.new_disk or usual_disk(groups)
    way = Way(
        "replace",
        Message("Replace the disks by larger ones"),
        Message(
            "One disk after the other is replaced and rebuilt. A group grows once its last small disk is replaced."
        ),
    )
    if reason := pool_trouble(pool) or ("" if groups else UNKNOWN):
        return replace(way, reason=reason)
    part = partition_bytes(size)
    counts = [layout_growth.count_smaller(group, part) for group in groups]
    count = sum(counts)
    if not count:
        reason = Message(
            "No disk of {pool} is smaller than {size}. Choose a larger disk.", pool=pool.name, size=disk_size(size)
        )
        return replace(way, reason=reason)
    after = [layout_growth.enlarge_group(group, part) for group in groups]
    gain = added_bytes(groups, after)
    own = [one for one in sorted(facts.free, reverse=True) if partition_bytes(one) >= part][:count]
    parity = min(group.parity for group, small in zip(groups, counts, strict=True) if small)
    every = Message("all ") if count == sum(group.width for group in groups) and count > 1 else ""
    disks = (
        Message("{every}{count} disks", every=every, count=count)
        if count > 1
        else Message("the disk")
        if groups[0].width == len(groups) == 1
        else Message("the smaller disk")
    )
    estimate = estimate_rebuild(pool, facts.past, rotational=facts.rotational)
    title = Message(
        "Replace {disks} by {by} of {size}",
        disks=disks,
        by=Message("ones") if count > 1 else Message("one"),
        size=disk_size(size),
    )
    return replace(
        way,
        title=title,
        gain=gain,
        total=facts.total + gain,
        disks=count,
        bought=(size,) * (count - len(own)),
        rebuilds=count,
        estimate=estimate,
        hindrance=single_disk_hindrance(facts, parity),
        meanwhile=replacing_risk(facts, parity, count, estimate.seconds),
        protection=protection_text(after),
        targets=tuple(guid for guid, own_part in member_parts(pool) if own_part < part),
        undo=Message(
            "No: once a group uses the larger disks, smaller ones cannot take their places. The old disks "
            "are free then."
        ),
        notes=tuple(replacing_notes(groups, after)),
    )


def member_parts(pool: Pool) -> Iterator[tuple[int, int]]:
    """The guid of each disk for data with the bytes of its partition."""
    for vdev in data_groups(pool):
        for member in members_of(vdev):
            yield next(member.devices()).guid, layout_growth.part_size(member)


def replacing_notes(groups: Sequence[DataGroup], after: Sequence[DataGroup]) -> Iterator[str]:
    """What each group gains by itself, and what unequal disks leave unused."""
    if len(groups) > 1 and (pairs := [(old, new) for old, new in zip(groups, after, strict=True) if old != new]):
        old, new = pairs[0]
        one = added_bytes(groups, [new if group is old else group for group in groups])
        yield Message(
            "Each group grows by itself: with the {width} disks of the first one replaced, there are {one} more.",
            width=old.width,
            one=size_text(one),
        )
    if any(max(group.parts) - min(group.parts) > max(group.parts) // 50 for group in after):
        yield Message("Some disks are larger than the new ones. The smallest of each group counts.")
