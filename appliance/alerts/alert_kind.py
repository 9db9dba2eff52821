"""What a kind of alert is."""

from __future__ import annotations

from typing import Literal

import msgspec

from appliance.message import Message

Severity = Literal["critical", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "notice")
SEVERITY_WORDS: dict[str, str] = {
    "critical": Message("critical"),
    "warning": Message("warning"),
    "notice": Message("notice"),
}
MINUTE, HOUR = 60, 3600


def severity_word(severity: str) -> str:
    """The word for a severity; the severity itself where a newer Larder stored one that is not known here."""
    return SEVERITY_WORDS.get(severity, severity)


class AlertKind(msgspec.Struct, frozen=True):
    """One kind of alert.

    ``source`` must be readable before an alert of the kind may clear. ``settle``: seconds that a fault must be gone
    before its alert clears, so that a fault that flaps stays one alert. ``wait``: seconds that it must last before it
    becomes an alert. Of one ``group`` and subject only the highest ``rank`` is open. ``news``: it reports something
    that has happened, so nobody is notified that it is over.
    """

    code: str
    severity: Severity
    source: str
    name: str
    meaning: str
    todo: str
    button: str
    group: str = ""
    rank: int = 0
    settle: int = MINUTE
    wait: int = 0
    news: bool = False
