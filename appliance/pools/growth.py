"""Every way to more room in one pool: bytes, disks, rebuilds, and what cannot be undone. Pure functions of facts.

A way that this pool cannot take is in the list with its reason. Sizes are those of ``zfs list`` (``layout/growth.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec.structs import replace

from appliance.facts.cleanup import Cleanup
from appliance.formatting import disk_size, names_text, size_text
from appliance.layout import growth as layout_growth
from appliance.layout.descriptions import describe_survival
from appliance.layout.geometry import LEAST_DISKS
from appliance.layout.growth import DataGroup
from appliance.message import Message
from appliance.pools.base import pool_trouble
from appliance.pools.growth_disks import gather_disks, partitions, unequal_note, usual_disk, whole_disk
from appliance.pools.growth_replace import replace_disks
from appliance.pools.growth_way import GrowthFacts, OldBlocks, Way
from appliance.pools.growth_words import UNKNOWN, added_bytes, missing_places, protection_text
from appliance.pools.rebuild_estimate import estimate_expansion
from appliance.pools.vdevs.expand import MOST_RAIDZ
from appliance.pools.vdevs.groups import data_groups
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place, partition_bytes

NAMED = 3  # folders in a sentence
EXPANSION = "raidz_expansion"  # the feature of a pool


def list_ways(facts: GrowthFacts) -> tuple[Way, ...]:
    """Every way, the cheapest kind first."""
    groups = layout_growth.read_groups(facts.pool)
    return (
        clean_up(facts),
        expand_raidz(facts, groups),
        add_group(facts, groups),
        replace_disks(facts, groups),
        second_pool(facts, groups),
    )


# --- what the ways share ----------------------------------------------------------------------------------------------


# --- the ways ---------------------------------------------------------------------------------------------------------
def clean_up(facts: GrowthFacts) -> Way:
    """Delete snapshots and copies that no backup uses."""
    name, found = facts.pool.name, facts.cleanup
    way = Way("clean", Message("Only clean up"), Message("Nothing to buy, and no disk changes."))
    freed = min(found.freed, facts.used)
    if not freed:
        if found.least:
            reason = Message(
                "What deleting snapshots would free could not be measured: some are protected or have clones."
            )
        elif found.staying and facts.held:
            reason = Message(
                "Snapshots hold {held}, but deleting those that can be deleted frees nothing: the others are "
                "protected or have clones.",
                held=size_text(facts.held),
            )
        elif found.withheld:
            reason = Message("What snapshots and old copies hold stays reserved for their folders.")
        else:
            reason = Message("No snapshot holds deleted or changed files, and no old copy is left.")
        return replace(way, reason=reason)
    return replace(
        way,
        total=facts.total,
        freed=freed,
        least=found.least,
        hindrance=Message("{name} has a checkpoint, which keeps what you delete. Discard it first.", name=name)
        if facts.pool.checkpoint
        else "",
        protection=Message("{name} stays as it is, but deleted snapshots cannot bring back files.", name=name),
        undo=Message("No: deleted snapshots and copies are gone for good."),
        notes=tuple(cleanup_notes(found)),
    )


def cleanup_notes(found: Cleanup) -> Iterator[str]:
    """What is freed where, and what is not."""
    if found.snapshots:
        yield Message(
            "Snapshots hold {held} that are not in the folders any more. To free that, all of them would "
            "have to be deleted.",
            held=size_text(found.snapshots),
        )
    if found.reserved:
        yield Message(
            "{reserved} more are reserved for {names} only because of their snapshots. Deleting these "
            "snapshots frees that.",
            reserved=size_text(found.reserved),
            names=names_text(found.reserving, NAMED),
        )
    if found.copies:
        yield Message(
            "Copies that no backup uses any more hold {copies}, with their snapshots.", copies=size_text(found.copies)
        )
    if found.withheld:
        yield Message(
            "Of all that, {withheld} stay reserved for their folders and give no room to others.",
            withheld=size_text(found.withheld),
        )
    if found.staying == 1:
        yield Message("One snapshot is protected or has a clone. It stays, with all that it holds.")
    elif found.staying:
        yield Message(
            "{staying} snapshots are protected or have clones. They stay, with all that they hold.",
            staying=found.staying,
        )
    if found.least:
        yield Message("More may be freed: not everything could be measured.")


def expand_raidz(facts: GrowthFacts, groups: Sequence[DataGroup]) -> Way:
    """Add one disk to the narrowest raidz."""
    pool = facts.pool
    raidz = [(group, vdev) for group, vdev in zip(groups, data_groups(pool), strict=False) if vdev.kind == "raidz"]
    way = Way(
        "expand",
        Message("Expand the raidz by a disk"),
        Message("One more disk joins the raidz, and ZFS spreads the data over all of them."),
    )
    if reason := expansion_reason(facts, groups, any_raidz=bool(raidz)):
        return replace(way, reason=reason)
    group, vdev = min(raidz, key=lambda pair: pair[0].width)
    after = [layout_growth.widen_group(one) if one is group else one for one in groups]
    gain, share = added_bytes(groups, after), layout_growth.block_share(group, group.width, group.width + 1)
    disk = whole_disk(min(group.parts))
    needed = vdev_tree.needed_bytes(Place(vdev.children[0], (vdev,)))
    fits = [size for size in facts.free if partition_bytes(size) >= needed]
    weight = Fraction(group.space[0], sum(one.space[0] for one in groups) or 1)
    estimate = estimate_expansion(pool, facts.past, rotational=facts.rotational)
    notes = [Message("A disk larger than {disk} adds no more: the smallest of the raidz counts.", disk=disk_size(disk))]
    if share < 1:
        notes.append(
            Message(
                "Older files keep {width} parts of data for {parity} of parity until they are written again; "
                "new ones have {width_2} for {parity}. ZFS goes on showing space with the old ratio, so new "
                "files seem smaller.",
                width=group.width - group.parity,
                parity=group.parity,
                width_2=group.width + 1 - group.parity,
            )
        )
    return replace(
        way,
        title=Message("Expand the {layout} by a disk", layout=group.layout),
        gain=gain,
        total=facts.total + gain,
        share=1 - weight * (1 - share),
        rewritten=rewritten_bytes(facts, after),
        disks=1,
        bought=() if fits else (disk,),
        rebuilds=1,
        estimate=estimate,
        hindrance=missing_places(facts, 1),
        meanwhile=Message(
            "Files stay available, and {pool} survives {survived} all the time. If one fails, the expansion "
            "waits until it is replaced.",
            pool=pool.name,
            survived=describe_survival(group.parity),
        ),
        protection=protection_text(after),
        undo=Message("No: a raidz never becomes narrower, and ZFS older than 2.3 can no longer import the pool."),
        targets=(vdev.guid,),
        notes=tuple(notes),
    )


def rewritten_bytes(facts: GrowthFacts, groups: Sequence[DataGroup]) -> int:
    """Bytes at most that rewriting every file gives back in these groups, which may be wider
    than when they were created.

    A block keeps the ratio of data and parity of the width that it was written with. Those in the folders count as if
    all were of before the first expansion, since nothing says when they were written.
    """
    space = sum(group.space[0] for group in groups) or 1
    saved = sum(
        (1 - layout_growth.block_share(group, group.made, group.width)) * Fraction(group.space[0], space)
        for group in groups
    )
    return int(max(facts.used - facts.held, 0) * saved)


def find_old_blocks(facts: GrowthFacts) -> OldBlocks | None:
    """What rewriting gives back where a raidz was expanded before;
    None where none was, or one is being expanded now."""
    groups = layout_growth.read_groups(facts.pool)
    gives = rewritten_bytes(facts, groups)
    if not gives or any(work.kind == "expand" and work.under_way for work in facts.pool.work):
        return None
    share, group = min(
        ((layout_growth.block_share(one, one.made, one.width), one) for one in groups), key=lambda pair: pair[0]
    )
    text = Message(
        "The {layout} was expanded before. Files from before that keep more parity, and take up to {percent} "
        "% more room than if they were written again. Larder cannot see which files were written since.",
        layout=group.layout,
        percent=round((1 / share - 1) * 100),
    )
    return OldBlocks(gives, text)


def expansion_reason(facts: GrowthFacts, groups: Sequence[DataGroup], *, any_raidz: bool) -> str:
    """Why no raidz of the pool can be expanded; empty where one can."""
    vdevs = data_groups(facts.pool)
    if not any(vdev.kind == "raidz" for vdev in vdevs):
        if any(vdev.kind == "mirror" for vdev in vdevs):
            return Message(
                "Only a raidz can be expanded. A disk added to a mirror is one more copy of the same files, "
                "which gives no room."
            )
        return Message(
            "Only a raidz can be expanded. A disk added to a single one makes it a mirror, which protects "
            "but gives no room."
        )
    if facts.lacks_expansion or EXPANSION in facts.features_off:
        return Message(
            "The feature {expansion} is off in this pool. Upgrade the pool on its page first.", expansion=EXPANSION
        )
    if trouble := pool_trouble(facts.pool):
        return trouble
    if not groups or not any_raidz:
        return UNKNOWN
    if min(group.width for group in groups if group.layout.startswith("raidz")) >= MOST_RAIDZ:
        return Message("Its raidz has {most_raidz} disks, the most that ZFS allows.", most_raidz=MOST_RAIDZ)
    return ""


def add_group(facts: GrowthFacts, groups: Sequence[DataGroup]) -> Way:
    """Add another group like the first."""
    way = Way(
        "group",
        Message("Add a group of disks"),
        Message("Another group (vdev) adds its room at once. Files that are there stay where they are."),
    )
    if reason := pool_trouble(facts.pool) or ("" if groups else UNKNOWN):
        return replace(way, reason=reason)
    first = groups[0]
    width = max(first.width, LEAST_DISKS[first.layout])
    sizes, bought = gather_disks(facts.free, width, facts.new_disk or usual_disk(groups))
    new = layout_growth.new_group(first.layout, partitions(sizes), max(group.ashift for group in groups))
    after = [*groups, new]
    gain = added_bytes(groups, after)
    has_raidz = any(group.layout.startswith("raidz") for group in after)
    name = (
        Message("another disk")
        if first.layout == "stripe"
        else Message("another {layout} of {width}", layout=first.layout, width=width)
    )
    notes = [*filter(None, [unequal_note(sizes)])]
    if first.layout == "stripe":
        notes.append(Message("The more disks without protection, the sooner one of them fails."))
    return replace(
        way,
        title=Message("Add {name}", name=name),
        gain=gain,
        total=facts.total + gain,
        disks=width,
        bought=bought,
        hindrance=missing_places(facts, width),
        meanwhile=Message("There is no rebuild. The room is there at once."),
        protection=protection_text(after),
        undo=Message("No: a pool with a raidz keeps its groups for good.")
        if has_raidz
        else Message("Yes: the group can be removed again as long as the others have room for its files."),
        notes=tuple(notes),
    )


def second_pool(facts: GrowthFacts, groups: Sequence[DataGroup]) -> Way:
    """Create another pool of the same kind beside this one."""
    way = Way(
        "pool",
        Message("Create a second pool"),
        Message("It is independent: this pool stays as it is, and folders are moved by you."),
    )
    if not groups:
        return replace(way, reason=UNKNOWN)
    first = groups[0]
    width = max(first.width, LEAST_DISKS[first.layout])
    sizes, bought = gather_disks(facts.free, width, facts.new_disk or usual_disk(groups))
    new = layout_growth.new_group(first.layout, partitions(sizes))
    gain = layout_growth.pool_bytes([new])
    name = (
        Message("of one disk")
        if first.layout == "stripe"
        else Message("as {layout} of {width}", layout=first.layout, width=width)
    )
    notes = [Message("The two pools do not share room: one can be full while the other is empty.")]
    return replace(
        way,
        title=Message("Create a second pool {name}", name=name),
        gain=gain,
        total=facts.total + gain,
        disks=width,
        bought=bought,
        hindrance=missing_places(facts, width),
        meanwhile=Message("There is no rebuild. Moving folders to it takes as long as copying them."),
        protection=Message(
            "{protection_text} That is the second pool; this one stays as it is.",
            protection_text=protection_text([new]),
        ),
        undo=Message("Yes: the second pool can be destroyed once it is empty."),
        notes=(*notes, *filter(None, [unequal_note(sizes)])),
    )
