"""The entries of the settings in a record: each validates itself, because anybody may have written it."""

from __future__ import annotations

import re
from typing import Literal

from appliance import snapshot_names
from appliance.errors import Reason, Refused
from appliance.strict_struct import StrictStruct

LAST = 2**53  # the largest figure that every reader of JSON takes
SERVER = re.compile(r"[A-Za-z0-9:_][A-Za-z0-9.:_-]{0,254}")
ADDRESS = re.compile(r"[^\s@./-][^\s@]{0,63}@\w[\w.-]{0,188}")
CODE = re.compile(r"[a-z0-9.-]{1,40}")
GUID = re.compile(r"[1-9][0-9]{0,19}")
LANGUAGE = re.compile(r"[a-z]{2}(-[a-z]{2})?|")
PRICE = re.compile(r"\d{1,7}(\.\d{1,2})?")
Severity = Literal["critical", "warning", "notice"]
Often = Literal["never", "week", "month", "quarter"]


def out_of_range() -> Reason:
    return Reason("setting-out-of-range", "A value is missing, too long or out of range.")


def require(*conditions: object) -> None:
    """Raises Refused unless all hold."""
    if not all(conditions):
        raise Refused(out_of_range())


def is_line(text: str, most: int) -> bool:
    """Whether a text is one line that can be seen, of at most so many characters."""
    return len(text) <= most and (text.isprintable() or not text)


def is_hour(*hours: int) -> bool:
    return all(0 <= hour <= 23 for hour in hours)


class Notifications(StrictStruct):
    """Where mail goes and through which server. Its password is in the sealed secrets."""

    host: str = ""
    port: int = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    authority: str = ""
    user: str = ""
    sender: str = ""
    critical: tuple[str, ...] = ()
    warning: tuple[str, ...] = ()
    notice: tuple[str, ...] = ()
    quiet_from: int = 0
    quiet_to: int = 0
    digest_hour: int = 8
    weekly: bool = False
    address: str = ""

    def __post_init__(self) -> None:
        recipients = (*self.critical, *self.warning, *self.notice)
        require(
            not self.host or SERVER.fullmatch(self.host),
            1 <= self.port <= 65535,
            len(self.authority) <= 65536 and "PRIVATE KEY" not in self.authority,
            all(is_line(text, 255) for text in (self.user, self.sender, self.address)),
            len(recipients) <= 150 and all(ADDRESS.fullmatch(one) and one.isprintable() for one in recipients),
            is_hour(self.quiet_from, self.quiet_to, self.digest_hour),
        )

    @property
    def key(self) -> str:
        return ""


class BoxLanguage(StrictStruct):
    """The language of the box: of its mails, notifications and console."""

    language: str

    def __post_init__(self) -> None:
        require(LANGUAGE.fullmatch(self.language))

    @property
    def key(self) -> str:
        return ""


class AlertLevel(StrictStruct):
    """A chosen severity of a kind of alert."""

    kind: str
    severity: Severity

    def __post_init__(self) -> None:
        require(CODE.fullmatch(self.kind))

    @property
    def key(self) -> str:
        return self.kind


class AcceptedValue(StrictStruct):
    """A value of a disk that gives no alert until it grows."""

    disk: str
    count: str
    value: int
    by: str = ""

    def __post_init__(self) -> None:
        require(
            self.disk and is_line(self.disk, 300),
            CODE.fullmatch(self.count.replace("_", "-")),
            0 <= self.value <= LAST,
            is_line(self.by, 150),
        )

    @property
    def key(self) -> tuple[str, str]:
        return self.disk, self.count


class DiskChoice(StrictStruct):
    """What was chosen for a disk: whether the schedule tests it, after how many minutes it sleeps (0: never)."""

    disk: str
    tested: bool = True
    sleep: int | None = None

    def __post_init__(self) -> None:
        require(self.disk and is_line(self.disk, 300), self.sleep is None or 0 <= self.sleep <= 24 * 60)

    @property
    def key(self) -> str:
        return self.disk


class SelfTests(StrictStruct):
    """The self-test schedule."""

    short: Often = "week"
    long: Often = "month"
    first: int = 1
    last: int = 6

    def __post_init__(self) -> None:
        require(is_hour(self.first, self.last))

    @property
    def key(self) -> str:
        return ""


class CareChoice(StrictStruct):
    """When a pool is scrubbed or trimmed."""

    pool: str  # its guid
    kind: Literal["scrub", "trim"]
    every: Often
    first: int
    last: int
    inside: bool = False

    def __post_init__(self) -> None:
        require(GUID.fullmatch(self.pool), is_hour(self.first, self.last))

    @property
    def key(self) -> tuple[str, str]:
        return self.pool, self.kind


class PriceChoice(StrictStruct):
    """What a TB costs."""

    per_tb: str
    currency: str

    def __post_init__(self) -> None:
        require(PRICE.fullmatch(self.per_tb), is_line(self.currency, 5))

    @property
    def key(self) -> str:
        return ""


class PlannedGrowth(StrictStruct):
    """A plan to replace the disks of a pool by larger ones. Times in seconds since 1970.
    ``replaced``: guids of an old disk and of the one that took its place, what that is called, and when it was seen."""

    pool_guid: str
    pool: str
    size: int
    targets: tuple[tuple[str, str], ...]
    begun: int
    moved: int
    begun_by: str = ""
    done: int = 0
    replaced: tuple[tuple[str, str, str, int], ...] = ()

    def __post_init__(self) -> None:
        require(
            GUID.fullmatch(self.pool_guid),
            self.pool and is_line(self.pool, 255),
            0 < self.size <= LAST,
            0 < len(self.targets) <= 500,
            all(GUID.fullmatch(guid) and is_line(label, 300) for guid, label in self.targets),
            all(0 < moment < 2**33 for moment in (self.begun, self.moved)),
            0 <= self.done <= len(self.targets),
            len(self.replaced) <= 1000,
            all(GUID.fullmatch(old) and GUID.fullmatch(new) for old, new, _label, _at in self.replaced),
            all(is_line(label, 300) and 0 < at < 2**33 for _old, _new, label, at in self.replaced),
            is_line(self.begun_by, 150),
        )

    @property
    def key(self) -> str:
        return self.pool_guid


class BayChoice(StrictStruct):
    """A bay: its place and its label."""

    port: str
    position: int
    label: str = ""

    def __post_init__(self) -> None:
        require(self.port and is_line(self.port, 200), 0 <= self.position <= 10_000, is_line(self.label, 20))

    @property
    def key(self) -> str:
        return self.port


class PageChoice(StrictStruct):
    """What somebody who signs in has chosen for the pages."""

    user: str
    units: Literal["TB", "TiB"] = "TB"
    language: str = ""
    show_commands: bool = False

    def __post_init__(self) -> None:
        require(self.user and is_line(self.user, 150), LANGUAGE.fullmatch(self.language))

    @property
    def key(self) -> str:
        return self.user


class LedgerEntry(StrictStruct, array_like=True):
    """A snapshot that a schedule took: guids of its dataset and its own, and what it counts as. Times as above."""

    dataset: str
    guid: str
    grains: str
    until: int | None = None
    at: int | None = None

    def __post_init__(self) -> None:
        grains = self.grains.split(",")
        require(
            GUID.fullmatch(self.dataset) and GUID.fullmatch(self.guid),
            set(grains) <= set(snapshot_names.GRAINS) and len(grains) == len(set(grains)),
            all(moment is None or 0 < moment < 2**33 for moment in (self.until, self.at)),
        )

    @property
    def key(self) -> tuple[str, str]:
        return self.dataset, self.guid
