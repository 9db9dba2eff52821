"""What several ways to more room say alike, and the bytes that they add."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.layout import growth as layout_growth
from appliance.layout import risk
from appliance.layout.descriptions import describe_survival, number_word
from appliance.layout.growth import DataGroup
from appliance.message import Message
from appliance.pools.growth_way import GrowthFacts

UNKNOWN = Message(
    "Larder cannot calculate this pool: the size of one of its groups is not known, or it is of a kind such as draid."
)


def added_bytes(groups: Sequence[DataGroup], after: Sequence[DataGroup]) -> int:
    return max(layout_growth.pool_bytes(after) - layout_growth.pool_bytes(groups), 0)


def missing_places(facts: GrowthFacts, count: int) -> str:
    """What to see to where the box is not known to have room for so many disks."""
    if count <= facts.places:
        return ""
    known = (
        Message("no free bay")
        if not facts.places
        else Message(
            "room for {places} more {what}",
            places=facts.places,
            what=Message("disk") if facts.places == 1 else Message("disks"),
        )
    )
    return Message(
        "It needs room for {count} more {what}, and Larder knows of {known}.",
        count=count,
        what=Message("disk") if count == 1 else Message("disks"),
        known=known,
    )


def protection_text(groups: Sequence[DataGroup]) -> str:
    """``Survives one failed disk. If two fail at once, all is lost in 33 % of cases.``"""
    shape = [(group.width, group.parity) for group in groups]
    survives = risk.failures_survived(shape)
    if not survives:
        return Message("Survives no failed disk: each one that fails loses all files of the pool.")
    odds = risk.loss_probability(shape, survives + 1)
    lost = "" if odds == 1 else Message(" in {percent_text} of cases", percent_text=risk.percent_text(odds))
    return Message(
        "Survives {survived}. If {number_word} fail at once, all is lost{lost}.",
        survived=describe_survival(survives),
        number_word=number_word(survives + 1),
        lost=lost,
    )
