"""Capacity, risk, speed and cost of each sensible layout of given disks, and the recommended one.

Pure functions. Capacity comes from ``geometry``, probabilities from ``risk``, the layouts from ``choices``. Speeds are
ratios to a single disk: a raidz group does random I/O like one disk and sequential I/O like its data disks; a mirror
writes like one disk and reads from all its copies (zpoolconcepts(7)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from appliance.formatting import disk_size, list_with_and, size_text
from appliance.layout import risk
from appliance.layout.choices import (
    LayoutChoice,
    deal_disks,
    differ_in_size,
    partition_size,
    rest_mirrors,
    rest_sizes,
    sensible_layouts,
    usual_layout,
)
from appliance.layout.geometry import MIB, PARTITION_MARGIN, expanded_bytes, file_bytes, parity_of, usable_bytes
from appliance.layout.proposal import Candidate, Growth, Proposal
from appliance.layout.reasons import recommendation_reason
from appliance.message import Message, join_messages

TB = 10**12
LARGE = 4 * TB  # rebuilding such a disk takes a day or more while it is in use
WIDE_RAIDZ1 = 5
WIDE = 12
# The usual layout is not recommended where it holds less than this share of another layout that is as safe.
ENOUGH = 0.6
# The same for a layout that survives one failure less, which has to hold even more to be preferred.
WORTH_A_FAILURE = 0.45
NEARLY = 0.75


def propose_layouts(disks: Sequence[Candidate], *, ashift: int = 12) -> tuple[Proposal, ...]:
    """Every sensible layout of these disks, the recommended one first, then the safest and largest."""
    if not disks:
        return ()
    proposals = [
        judge_layout(disks, choice, ashift=ashift) for choice in sensible_layouts([disk.size for disk in disks])
    ]
    usual = next(proposal for proposal in proposals if proposal.choice == usual_layout(len(disks)))
    best = choose_recommended(proposals, usual)
    reason = join_messages([recommendation_reason(best, usual, len(disks)), equal_partitions_note(proposals, best)])
    others = sorted(
        (proposal for proposal in proposals if proposal is not best),
        key=lambda proposal: (-proposal.survives, -proposal.usable, proposal.choice.value),
    )
    return (replace(best, reason=reason), *others)


def choose_recommended(proposals: Sequence[Proposal], usual: Proposal) -> Proposal:
    """The layout to recommend: the usual one for this number of disks, unless another holds much more of these disks.

    Equal partitions make two pools to look after, so they are offered but not recommended.
    """
    best = usual
    whole = [proposal for proposal in proposals if proposal.survives and not proposal.choice.equal]
    for survives, share in ((usual.survives, ENOUGH), (1, WORTH_A_FAILURE)):
        others = [proposal for proposal in whole if proposal.survives >= survives]
        if usual.survives >= survives and others and best.usable < share * max(other.usable for other in others):
            best = choose_safest(others)
    return best


def choose_safest(proposals: Sequence[Proposal]) -> Proposal:
    """The proposal least likely to lose data, of those that hold nearly as much as the largest."""
    most = max(proposal.usable for proposal in proposals)
    near = [proposal for proposal in proposals if proposal.usable >= NEARLY * most]
    return min(
        near, key=lambda proposal: (proposal.second_loss, proposal.third_loss, -proposal.usable, proposal.choice.value)
    )


def equal_partitions_note(proposals: Sequence[Proposal], best: Proposal) -> str:
    """A sentence about what equal partitions would hold, where that is much more and as safe."""
    others = [proposal for proposal in proposals if proposal.choice.equal and proposal.survives >= best.survives]
    largest = max((other.usable_surviving(best.survives) for other in others), default=0)
    if best.usable >= ENOUGH * largest:
        return ""
    return Message("Equal partitions would hold {size}, but as two pools to look after.", size=size_text(largest))


def judge_layout(disks: Sequence[Candidate], choice: LayoutChoice, *, ashift: int = 12) -> Proposal:
    """One layout of these disks with its figures and warnings; the choice has to fit the number of disks."""
    sizes = [disk.size for disk in disks]
    groups, spares = deal_disks(sizes, choice)
    slice_ = partition_size(sizes) if choice.equal else 0
    margin = 0 if slice_ else PARTITION_MARGIN
    shape = [[slice_ or sizes[at] for at in group] for group in groups]
    risks = risk_groups(choice.layout, shape)
    counted = sum(sum(group) if choice.layout == "stripe" else min(group) * len(group) for group in shape)
    left = rest_sizes(sizes) if slice_ else []
    mirrors = [[left[at] for at in group] for group in rest_mirrors(left)] if choice.mirrored else []
    rests = [min(group) for group in mirrors for _disk in group] if mirrors else [size for size in left if size]
    members, data = sum(map(len, shape)), sum(data_disks(choice.layout, len(group)) for group in shape)
    mirrored = choice.layout == "mirror"
    proposal = Proposal(
        choice=choice,
        title=layout_title(choice, len(groups[0])),
        groups=groups,
        spares=spares,
        raw=sum(sizes),
        usable=usable_bytes(choice.layout, shape, ashift, margin=margin),
        large_files=file_bytes(choice.layout, shape, ashift, MIB),
        parity_cost=counted - counted * data // members,
        waste=sum(sizes) - counted - sum(rests),
        survives=risk.failures_survived(risks),
        second_loss=risk.loss_probability(risks, 2),
        third_loss=risk.loss_probability(risks, 3),
        random_read=members if choice.layout in {"stripe", "mirror"} else len(groups),
        random_write=members if choice.layout == "stripe" else len(groups),
        sequential_read=members if mirrored else data,
        sequential_write=data,
        slice=slice_,
        rest=usable_bytes("mirror" if mirrors else "stripe", mirrors or [rests], ashift, margin=0) if rests else 0,
    )
    return replace(
        proposal,
        growth=tuple(list_growth(proposal, shape, ashift, margin)),
        warnings=tuple(layout_warnings(disks, proposal, shape, ashift)),
    )


def risk_groups(layout: str, groups: Sequence[Sequence[int]]) -> list[risk.Group]:
    """Disks and parity of each group; every disk of a stripe is its own group without parity."""
    if layout == "stripe":
        return [(1, 0) for group in groups for _disk in group]
    return [(len(group), parity_of(layout, len(group))) for group in groups]


def data_disks(layout: str, disks: int) -> int:
    """How many disks of a group hold data rather than parity."""
    return disks - parity_of(layout, disks)


def layout_title(choice: LayoutChoice, width: int) -> str:
    """A layout in words: ``raidz2 of 6``, ``2 × Mirror of 2, 1 spare``, ``One disk alone``."""
    name = {"stripe": "Stripe", "mirror": "Mirror"}.get(choice.layout, choice.layout)
    if choice.layout == "stripe" and width == 1:
        return Message("One disk alone")
    one_group = Message("{layout} of {width}", layout=name, width=width)
    spare = Message("{count} spare", count=1) if choice.spares == 1 else Message("{count} spares", count=choice.spares)
    parts = [
        one_group
        if choice.groups == 1
        else Message("{groups} × {layout} of {width}", groups=choice.groups, layout=name, width=width),
        spare if choice.spares else "",
        Message("equal partitions") if choice.equal else "",
        Message("the rest mirrored") if choice.mirrored else "",
    ]
    return join_messages(parts, ", ")


def list_growth(proposal: Proposal, groups: Sequence[Sequence[int]], ashift: int, margin: int) -> Iterator[Growth]:
    """What can be done later to hold more or to survive more, and what it adds."""
    layout, now = proposal.choice.layout, proposal.usable
    smallest, width = min(min(group) for group in groups), len(groups[0])
    common = disk_size(smallest)

    def gain_from(after: Sequence[Sequence[int]]) -> int:
        return max(usable_bytes(layout, after, ashift, margin=margin) - now, 0)

    if layout.startswith("raidz"):
        # zpool-attach(8): RAID-Z expansion. Older files keep their share of parity until they are written again.
        rewritten = gain_from([[*groups[0], min(groups[0])], *groups[1:]])
        yield Growth(
            Message("Add one disk of {size} to a group", size=common),
            max(expanded_bytes(layout, groups, ashift, margin=margin) - now, 0),
            Message(
                "Takes a day or two while files stay available. ZFS still counts with the old share of "
                "parity; files written afterwards need less, as if {size} had been added.",
                size=size_text(rewritten),
            ),
        )
    elif layout == "mirror":
        yield Growth(
            Message("Attach one more disk of {size} to a mirror", size=common),
            0,
            Message("No more space, but that mirror then survives one more failure."),
        )
    elif width == 1:
        how = Message("Attach a second disk of {size}", size=common)
        yield Growth(how, 0, Message("It becomes a mirror: one disk may then fail."))
    if layout == "stripe":
        yield Growth(
            Message("Add one more disk of {size}", size=common),
            gain_from([[*groups[0], smallest]]),
            Message("More disks, and each of them loses everything when it fails."),
        )
    else:
        yield Growth(
            Message("Add another group of {count} disks of {size}", count=width, size=common),
            gain_from([*groups, [smallest] * width]),
            Message("Available at once. Files that are there already stay where they are."),
        )
    several = layout != "stripe" and len(groups) > 1
    larger = [[2 * smallest] * width, *groups[1:]] if layout != "stripe" else [[2 * size for size in groups[0]]]
    twice = disk_size(2 * smallest)
    if several:
        how = Message(
            "Replace the {count} disks of one group by one of {size}, one after the other", count=width, size=twice
        )
    elif width > 1:
        how = Message("Replace every disk by one of {size}, one after the other", size=twice)
    else:
        how = Message("Replace the disk by one of {size}", size=twice)
    yield Growth(how, gain_from(larger), Message("The space appears when the last one is rebuilt."))


def layout_warnings(
    disks: Sequence[Candidate], proposal: Proposal, groups: Sequence[Sequence[int]], ashift: int
) -> Iterator[str]:
    """What a user should know before choosing this layout."""
    layout, width = proposal.choice.layout, len(groups[0])
    largest = max(disk.size for disk in disks)
    if layout == "stripe":
        yield Message("One failed disk loses everything in this pool. Keep a copy elsewhere.")
    if layout == "raidz1" and largest >= LARGE:
        yield Message(
            "Rebuilding disks of {size} takes a day or more, and a second failure in that time loses "
            "everything. raidz2 survives it.",
            size=disk_size(largest),
        )
    elif layout == "raidz1" and width > WIDE_RAIDZ1:
        yield Message(
            "Rebuilding a group of {count} disks takes a day or more, and a second failure in that time "
            "loses everything. raidz2 survives it.",
            count=width,
        )
    if layout != "mirror" and width > WIDE and layout != "stripe":
        yield Message(
            "A group of {count} disks rebuilds slowly, because every one of them has to be read. Two groups "
            "are better.",
            count=width,
        )
    if proposal.rest and proposal.choice.mirrored:
        yield Message(
            "The second pool, {size} for files, survives one failed disk. It is on the same disks as the "
            "first: a failed disk has to be replaced in both.",
            size=size_text(proposal.rest),
        )
    elif proposal.rest:
        yield Message(
            "The second pool, {size} for files, protects nothing: each failed disk that it is on loses all "
            "of it. Use it only for what you can do without.",
            size=size_text(proposal.rest),
        )
    elif layout != "stripe" and differ_in_size([disk.size for disk in disks]) and proposal.waste:
        idle = proposal.waste - sum(disks[at].size for at in proposal.spares)
        if idle > 0:
            yield Message(
                "The disks differ in size. Each counts only as much as the smallest of its group, so {size} "
                "would stay unused.",
                size=size_text(idle),
            )
    used = [disks[at] for group in proposal.groups for at in group] + [disks[at] for at in proposal.spares]
    yield from disk_warnings(used, ashift)


def disk_warnings(used: Sequence[Candidate], ashift: int) -> Iterator[str]:
    """What is to be known of the disks themselves."""
    for disk in used:
        if disk.trouble:
            yield Message("{disk} {trouble}. Leave it out, or replace it soon.", disk=disk.label, trouble=disk.trouble)
    if slow := [disk.label for disk in used if disk.shingled]:
        yield Message(
            "{disks}: this model overlaps its tracks (SMR). Long writes and rebuilding can take many times "
            "longer, and ZFS may then take it for failed.",
            disks=join_messages(slow, ", "),
        )
    sectors = {disk.physical_sector for disk in used}
    if max(sectors) > 1 << ashift:
        yield Message(
            "A disk has sectors of {size} bytes, larger than the pool's: each small write makes it read "
            "first. Choose a larger sector size.",
            size=max(sectors),
        )
    elif len(sectors) > 1:
        listed = list_with_and([str(size) for size in sorted(sectors)])
        yield Message(
            "The disks have sectors of {sizes} bytes. Together they work in {size}; a pool made for 512 "
            "could never take the larger ones.",
            sizes=listed,
            size=1 << ashift,
        )
    if len({disk.rotational for disk in used}) > 1:
        yield Message(
            "Hard disks and solid-state disks are mixed. The pool is as slow as its hard disks; a "
            "solid-state disk serves better as log or cache, or in a pool of its own."
        )


def choose_data_disks(disks: Sequence[Candidate]) -> list[int]:
    """Positions of the disks for the first proposal: hard disks where there are any, without those in trouble."""
    good = [at for at, disk in enumerate(disks) if not disk.trouble] or list(range(len(disks)))
    return [at for at in good if disks[at].rotational] or good
