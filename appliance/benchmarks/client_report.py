"""What a benchmark from another computer reports, as hostile input: every figure has bounds, every text is cut down.

Rates are in bytes a second, those of small files in files a second;
``busy_…`` is the share of one processor of the other computer. An empty list is what could not be measured.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from appliance.benchmarks.statistics import Summary, summarize_values
from appliance.errors import Reason, Refused
from appliance.strict_struct import StrictStruct

LONGEST_REPORT = 32 * 1024  # bytes
MOST_RUNS = 9
Rate = Annotated[float, Meta(gt=0, le=1e12)]
Rates = Annotated[tuple[Rate, ...], Meta(max_length=MOST_RUNS)]
Share = Annotated[float, Meta(ge=0, le=1)]
Line = Annotated[str, Meta(max_length=300)]
ShortLine = Annotated[str, Meta(max_length=100)]


class ClientFigures(StrictStruct):
    """The figures of one run of ``larder-client``."""

    system: ShortLine
    way: ShortLine
    own: Rates
    hashing: Rates
    wire_up: Rates
    wire_down: Rates
    write: Rates
    read: Rates
    small: Rates
    busy_write: Share
    busy_read: Share
    # The same with the setting that was tried; empty where none was.
    changed_write: Rates = ()
    changed_read: Rates = ()
    changed_small: Rates = ()
    notes: Annotated[tuple[Line, ...], Meta(max_length=10)] = ()

    def __post_init__(self) -> None:
        for text in (self.system, self.way, *self.notes):
            if not text.isprintable():
                raise ValueError("a text has characters that cannot be printed")

    def summary(self, name: str) -> Summary | None:
        return summarize_values(getattr(self, name))


class ClientReport(StrictStruct):
    """The last message of a run: figures, or why there are none."""

    token: Annotated[str, Meta(min_length=20, max_length=100)]
    figures: ClientFigures | None = None
    failed: Line = ""

    def __post_init__(self) -> None:
        if (self.figures is None) is not bool(self.failed) or not self.failed.isprintable():
            raise ValueError("either figures or a reason")


class LoopbackFigures(msgspec.Struct, frozen=True):
    """What the box reaches by itself: in the pool, and over the protocol without a network between.
    None: not measured."""

    pool_write: float | None = None
    pool_read: float | None = None
    protocol_write: float | None = None
    protocol_read: float | None = None


def decode(body: bytes, kind: Any) -> Any:
    """A message from another computer. Raises Refused."""
    try:
        if len(body) > LONGEST_REPORT:
            raise ValueError("it is too long")
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise Refused(
            Reason("client-report-unreadable", "The message cannot be read: {error}. Nothing was changed.", error=error)
        ) from error
