"""Why one layout is recommended rather than another, in sentences."""

from __future__ import annotations

from appliance.formatting import size_text
from appliance.layout.proposal import COUNTS, Proposal
from appliance.message import Message, join_messages


def recommendation_reason(best: Proposal, usual: Proposal, disks: int) -> str:
    """Why this layout is recommended, in a sentence or two."""
    holds = size_text(best.usable)
    if best is not usual:
        return reason_against_usual(best, usual)
    if disks == 1:
        return Message(
            "Add a second disk of the same size later, and the pool becomes a mirror, which survives a failed disk."
        )
    if best.choice.layout == "mirror" and best.choice.groups == 1:
        return Message(
            "Both disks hold the same data: one may fail and nothing is lost, and it holds {size}.", size=holds
        )
    if best.choice.layout == "mirror":
        return Message(
            "Either disk of each pair may fail, it is the fastest with so few disks, grows by two disks at a "
            "time, and holds {size}.",
            size=holds,
        )
    if best.choice.layout == "raidz1":
        return Message(
            "Any one disk may fail, and {percent} % of the space is for files: {size}.",
            percent=best.percent,
            size=holds,
        )
    if best.choice.layout == "raidz3":
        return Message(
            "With {disks} disks in one group a rebuild takes long, so any three may fail, and it holds {size}.",
            disks=disks,
            size=holds,
        )
    if best.choice.groups > 1:
        spare = Message("A spare steps in at once.") if best.spares else ""
        return join_messages(
            [
                Message(
                    "Any two disks of each group may fail, the groups are small enough to rebuild in "
                    "reasonable time, and it holds {size}.",
                    size=holds,
                ),
                spare,
            ]
        )
    return Message(
        "Any two disks may fail, even one while the other is being rebuilt, and it still holds {size}.", size=holds
    )


def reason_against_usual(best: Proposal, usual: Proposal) -> str:
    """Why a layout is recommended for these disks rather than the one that is usual for their number."""
    holds, would_hold = size_text(best.usable), size_text(usual.usable)
    count, percent = COUNTS[best.survives], best.percent
    return join_messages(
        [
            Message(
                "Any {count} of each group may fail, and it holds {size}, {percent} % of the disks.",
                count=count,
                size=holds,
                percent=percent,
            )
            if best.choice.groups > 1
            else Message(
                "Any {count} may fail, and it holds {size}, {percent} % of the disks.",
                count=count,
                size=holds,
                percent=percent,
            ),
            Message(
                "They differ in size: {layout} would hold only {size}, but any {count} may fail there.",
                layout=usual.title,
                size=would_hold,
                count=COUNTS[usual.survives],
            )
            if usual.survives > best.survives
            else Message("They differ in size: {layout} would hold only {size}.", layout=usual.title, size=would_hold),
        ]
    )
