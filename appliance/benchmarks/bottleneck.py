"""Name what limits a shared folder for another computer: the pool, the protocol, the network or that computer. Pure.

The rule, for each direction. A ceiling is the speed of one part alone: the pool (in the box), the protocol (over the
loopback of the box, which includes the pool), the network (bare TCP), the other computer (moving data within itself).

1. What was read faster than the network carries came from the other computer's memory: no answer.
2. The other computer is the limit where its program kept a processor busy, or where the folder reached about what that
   computer can move at all, and the network and each other part are about as fast as that.
3. Otherwise the lowest ceiling is the limit if the folder reached ``NEAR`` of it.
The protocol counts as a ceiling of its
   own only if it is clearly slower than the pool.
4. If the two lowest are as good as equal, both are named.
5. If the folder reached no ceiling, or a ceiling is not known that could be lower, there is no answer, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from appliance.benchmarks.client_report import ClientFigures, LoopbackFigures
from appliance.formatting import list_with_and, rate_text
from appliance.message import Message

Part = Literal["pool", "protocol", "network", "client", "unknown"]
Direction = Literal["write", "read"]
NEAR = 0.7  # share of a ceiling from which on it counts as reached: measurements minutes apart differ by so much
HELD_UP = 0.8  # share of the pool's speed; below it, the protocol is slower than the pool
ALIKE = 1.15  # two ceilings that differ by less cannot be told apart
BUSY = 0.85  # share of a processor; above it, the program could not have gone faster
FROM_MEMORY = 1.2  # times the network's speed
NAMES: dict[Part, str] = {
    "pool": Message("the pool"),
    "protocol": Message("the protocol"),
    "network": Message("the network"),
    "client": Message("the other computer"),
    "unknown": Message("unknown"),
}


class Ceilings(msgspec.Struct, frozen=True):
    """Speeds of the parts alone, in bytes a second; None where not measured."""

    pool: float | None
    protocol: float | None
    network: float | None
    client: float | None


class Bottleneck(msgspec.Struct, frozen=True):
    """The limit of one direction, and why, as a sentence. ``parts`` is empty where there is no answer."""

    direction: Direction
    reached: float
    ceilings: Ceilings
    parts: tuple[Part, ...]
    sentence: str

    @property
    def limit(self) -> Part:
        return self.parts[0] if self.parts else "unknown"


def judge(figures: ClientFigures, loopback: LoopbackFigures, *, cached: bool = False) -> tuple[Bottleneck, ...]:
    """The verdicts of a run, for writing and for reading.
    ``cached``: the box could keep what was read in its memory."""
    found = []
    for direction in ("write", "read"):
        if not (reached := figures.summary(direction)):
            continue
        wire, own = figures.summary("wire_up" if direction == "write" else "wire_down"), figures.summary("own")
        pool = loopback.pool_write if direction == "write" else loopback.pool_read
        protocol = loopback.protocol_write if direction == "write" else loopback.protocol_read
        ceilings = Ceilings(pool, protocol, wire.median if wire else None, own.median if own else None)
        busy = figures.busy_write if direction == "write" else figures.busy_read
        found.append(judge_direction(direction, reached.median, ceilings, busy, cached=cached and direction == "read"))
    return tuple(found)


def judge_direction(
    direction: Direction, reached: float, ceilings: Ceilings, busy: float, *, cached: bool = False
) -> Bottleneck:
    """The limit of one direction."""

    def verdict(parts: tuple[Part, ...], why: str) -> Bottleneck:
        said = Message("Writing: {why}", why=why) if direction == "write" else Message("Reading: {why}", why=why)
        return Bottleneck(direction, reached, ceilings, parts, said)

    wire, client = ceilings.network, ceilings.client
    if direction == "read" and wire and reached > FROM_MEMORY * wire:
        return verdict(
            (),
            Message(
                "{speed} is more than the network carries ({carried}), so the other computer read from its "
                "own memory. Measure with more data.",
                speed=rate_text(round(reached)),
                carried=rate_text(round(wire)),
            ),
        )
    if busy >= BUSY:
        return verdict(
            ("client",),
            Message(
                "the other computer is the limit. Its program kept a processor busy at {speed}.",
                speed=rate_text(round(reached)),
            ),
        )
    if wire and client and wire >= NEAR * client and reached <= client / NEAR:
        lower = [one for one in (ceilings.pool, ceilings.protocol) if one and one < NEAR * client]
        if lower:
            wire = None  # it was measured through that computer, and may be faster
        elif NEAR * client <= reached:
            return verdict(
                ("client",),
                Message(
                    "the other computer is the limit. By itself it moves no more than {speed}, and the "
                    "network kept up with that.",
                    speed=rate_text(round(client)),
                ),
            )
    return judge_ceilings(verdict, reached, lowest_first(ceilings, wire, cached=cached), ceilings)


def lowest_first(ceilings: Ceilings, wire: float | None, *, cached: bool) -> list[tuple[float, Part]]:
    """The ceilings that are known, the lowest first. What is read from the box's memory does not ask the pool."""
    pool, protocol = ceilings.pool, ceilings.protocol
    found: list[tuple[float, Part]] = []
    if pool and not cached:
        found.append((pool, "pool"))
    if protocol and not (pool and protocol >= HELD_UP * pool):
        found.append((protocol, "protocol"))
    if wire:
        found.append((wire, "network"))
    if ceilings.client:
        found.append((ceilings.client, "client"))
    return sorted(found)


def judge_ceilings(
    verdict: Callable[[tuple[Part, ...], str], Bottleneck],
    reached: float,
    found: list[tuple[float, Part]],
    ceilings: Ceilings,
) -> Bottleneck:
    """The limit by the lowest ceiling."""
    speed = rate_text(round(reached))
    if not found:
        return verdict((), Message("{speed}. Nothing was measured that it could be compared with.", speed=speed))
    lowest, part = found[0]
    if reached < NEAR * lowest:
        reason = describe_missing(ceilings) or Message(
            " The other computer, its way to the folder, or delays of the network hold it up."
        )
        return verdict(
            (),
            Message(
                "{speed}, which is less than each measured part alone can do (at least {ceiling}).{reason}",
                speed=speed,
                ceiling=rate_text(round(lowest)),
                reason=reason,
            ),
        )
    alike = tuple(other for value, other in found[1:] if value <= ALIKE * lowest)
    if alike:
        parts = (part, *alike)
        both = list_with_and([NAMES[one] for one in parts])
        return verdict(
            parts,
            Message(
                "{both} are the limit together: each of them alone does about {ceiling}, and {speed} arrive.",
                both=both,
                ceiling=rate_text(round(lowest)),
                speed=speed,
            ),
        )
    return verdict(
        (part,),
        Message(
            "{part} is the limit. {ceiling}, and {speed} arrive.",
            part=NAMES[part],
            ceiling=describe_ceiling(part, lowest, ceilings),
            speed=speed,
        ),
    )


def describe_missing(ceilings: Ceilings) -> str:
    """Which parts were not measured; empty where all were."""
    if ceilings.network is None and ceilings.protocol is None:
        return Message(" The network and pool and protocol were not measured and may be the limit.")
    if ceilings.network is None:
        return Message(" The network was not measured and may be the limit.")
    if ceilings.protocol is None:
        return Message(" Pool and protocol were not measured and may be the limit.")
    return ""


def describe_ceiling(part: Part, value: float, ceilings: Ceilings) -> str:
    """What a part alone can do."""
    speed = rate_text(round(value))
    if part == "protocol" and ceilings.pool:
        return Message(
            "Without a network it gives {speed}, where the folder itself gives {pool}",
            speed=speed,
            pool=rate_text(round(ceilings.pool)),
        )
    return {
        "pool": Message("In the box itself the folder gives {speed}", speed=speed),
        "protocol": Message("Without a network it gives {speed}", speed=speed),
        "network": Message("It carries {speed}", speed=speed),
        "client": Message("By itself it moves no more than {speed}", speed=speed),
    }[part]
