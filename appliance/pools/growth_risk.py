"""What a failure does while the disks of a pool are replaced by larger ones, and for how long. Pure."""

from __future__ import annotations

from appliance.formatting import duration_text
from appliance.layout.descriptions import describe_survival
from appliance.message import Message
from appliance.pools.growth_way import GrowthFacts
from appliance.pools.rebuild_estimate import SHORTEST


def single_disk_hindrance(facts: GrowthFacts, parity: int) -> str:
    """A disk that nothing protects cannot come out before the new one is complete."""
    if parity or facts.places:
        return ""
    return Message(
        "The old disk has to stay in until the new one is rebuilt, because no other disk holds its files, "
        "and Larder knows of no free bay."
    )


def replacing_risk(facts: GrowthFacts, parity: int, count: int, seconds: int) -> str:
    """What a failure does during ``count`` rebuilds of so many seconds each. Nobody knows how likely one is."""
    if facts.places:
        return Message(
            "With the new disk in a free bay, the old one stays in use until its rebuild has ended: {pool} "
            "survives {survived} all the time.",
            pool=facts.pool.name,
            survived=describe_survival(parity),
        )
    duration = duration_text(max(seconds, SHORTEST))
    span = Message("{count} times {duration}", count=count, duration=duration) if count > 1 else duration
    if not parity:
        return Message(
            "For about {span}, until a new disk is rebuilt, a failure of the old one loses everything.", span=span
        )
    if parity == 1:
        return Message(
            "Without a free bay the old disk has to come out first: for about {span}, one more failed disk "
            "in its group loses the pool.",
            span=span,
        )
    return Message(
        "Without a free bay the old disk has to come out first: for about {span}, its group survives only {left}.",
        span=span,
        left=describe_survival(parity - 1),
    )
