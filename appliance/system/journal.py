"""The system's journal, a page at a time: by area, severity, time and a part of the text, the newest first.

Every program of the box writes into it, also at the bidding of strangers. So a message is hostile text: bounded,
without control characters, without what looks like a secret. What is read is bounded in lines, bytes and seconds; a
page that stopped early says how far it got, and the cursor of the journal goes on from there. (journalctl(1),
journal-export formats in systemd's docs/JOURNAL_EXPORT_FORMATS.md)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from appliance import command
from appliance.command import CommandFailed
from appliance.errors import Reason, Refused
from appliance.message import Message
from appliance.request import Request
from appliance.system.redaction import Redactor, known_secrets

PAGE = 100  # lines
MOST_BYTES = 24 * 2**20  # read of the journal for one page
SECONDS = 6.0  # for one page; what is older than it got to is behind a link
SECONDS_OF_SILENCE = 30.0  # journalctl says nothing while it looks for lines that fit
LONGEST = 2000  # characters shown of a message
LONGEST_TEXT = 100
Area = Literal["all", "larder", "storage", "shares", "access"]
Severity = Literal["all", "warning", "error"]
Period = Literal["hour", "day", "week", "start", "former-start"]
SECONDS_OF: dict[str, float] = {
    "hour": timedelta(hours=1).total_seconds(),
    "day": timedelta(days=1).total_seconds(),
    "week": timedelta(days=7).total_seconds(),
}
BOOTS = {"start": "0", "former-start": "-1"}
PRIORITIES = {"error": "3", "warning": "4"}  # syslog's, and all that are worse
CURSOR = re.compile(r"(?:[a-z]=[0-9a-f]{1,32};){1,8}[a-z]=[0-9a-f]{1,32}")
FIELDS = "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_COMM,_SYSTEMD_UNIT,UNIT"


def of_units(*units: str) -> list[str]:
    """Matches for what units write and for what systemd says of them (as ``journalctl --unit`` makes them)."""
    return [*(f"_SYSTEMD_UNIT={unit}" for unit in units), "+", "_PID=1", *(f"UNIT={unit}" for unit in units)]


# Matches of one field are alternatives, those of different fields all have to fit, and a plus
# stands between alternatives.
AREAS: dict[str, list[str]] = {
    "all": [],
    "larder": [
        *of_units(
            "larder-agent.service",
            "larder-worker.service",
            "larder-web.service",
            "larder-prepare.service",
            "larder-mount.service",
            "larder-unlock.service",
            "larder-iscsi.service",
            "larder-shutdown@reboot.service",
            "larder-shutdown@poweroff.service",
            "larder-shutdown@halt.service",
            "larder-wire.service",
            "larder-web.socket",
            "larder-agent.socket",
            "redis-server@larder.service",
            "nginx.service",
        ),
        "+",
        "SYSLOG_IDENTIFIER=larder-agent",
        "SYSLOG_IDENTIFIER=larder",
    ],
    "storage": [
        "_TRANSPORT=kernel",
        "+",
        *of_units(
            "zfs-zed.service",
            "zfs-import-cache.service",
            "zfs-import-scan.service",
            "zfs-load-module.service",
            "zfs-mount.service",
            "zfs-volume-wait.service",
            "smartmontools.service",
            "smartd.service",
        ),
        "+",
        "SYSLOG_IDENTIFIER=zed",
        "SYSLOG_IDENTIFIER=smartd",
    ],
    "shares": [
        *of_units(
            "smbd.service",
            "nmbd.service",
            "netatalk.service",
            "nfs-server.service",
            "nfs-mountd.service",
            "nfs-idmapd.service",
            "nfsdcld.service",
            "rpcbind.service",
            "rpc-statd.service",
            "avahi-daemon.service",
            "wsdd2.service",
        ),
        "+",
        "SYSLOG_IDENTIFIER=smbd",
        "SYSLOG_IDENTIFIER=afpd",
        "SYSLOG_IDENTIFIER=cnid_dbd",
        "SYSLOG_IDENTIFIER=rpc.mountd",
    ],
    # 4 and 10: auth and authpriv, where every program writes about who gets in.
    "access": [
        "SYSLOG_FACILITY=4",
        "SYSLOG_FACILITY=10",
        "+",
        *of_units("ssh.service", "systemd-logind.service"),
        "+",
        "SYSLOG_IDENTIFIER=sshd",
        "SYSLOG_IDENTIFIER=sshd-session",
        "SYSLOG_IDENTIFIER=larder-sign-in",
    ],
}


class LogLine(msgspec.Struct, frozen=True):
    """A line. ``at``: seconds since 1970; ``source`` the program that wrote it;
    ``priority`` as syslog counts, 0 the worst."""

    at: float
    source: str
    priority: int
    text: str


class LogPage(msgspec.Struct, frozen=True):
    """Lines, the newest first. ``after``: the cursor from which the next page goes on; empty
    where there is nothing older.

    ``reached``: how far back it was read, in seconds since 1970; 0 where nothing was there. ``stopped``: time or bytes
    ended the page, not its number of lines. ``missing``: the journal has no such start of the box.
    """

    lines: tuple[LogLine, ...]
    after: str = ""
    reached: float = 0
    stopped: bool = False
    missing: bool = False


class ReadLog(Request, tag="read-log"):
    """A page of the journal, from the cursor ``after`` on into the past."""

    area: Area = "all"
    severity: Severity = "all"
    period: Period = "day"
    text: str = ""
    after: str = ""

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST_TEXT or "\0" in self.text:
            raise Refused(
                Reason(
                    "log-text-too-long", "Type at most {count} letters to look for.", field="text", count=LONGEST_TEXT
                )
            )
        if self.after and not CURSOR.fullmatch(self.after):
            raise Refused(Reason("log-position-invalid", "That is not a place in the log.", field="after"))

    def argv(self, since: float) -> list[str]:
        """The command that prints it, the newest line first; ``since`` in seconds since 1970, 0 for no limit."""
        return [
            *("journalctl", "--no-pager", "--quiet", "--output=json", f"--output-fields={FIELDS}", "--reverse"),
            *([f"--boot={BOOTS[self.period]}"] if self.period in BOOTS else []),
            *([f"--priority={PRIORITIES[self.severity]}"] if self.severity in PRIORITIES else []),
            # journalctl takes one beginning only; on further pages collect_page sees what is too old.
            *([f"--after-cursor={self.after}"] if self.after else [f"--since=@{since:.0f}"] if since else []),
            *AREAS[self.area],
        ]

    def read(self) -> LogPage:
        """Read the page. Raises Failed."""
        since = time.time() - SECONDS_OF[self.period] if self.period in SECONDS_OF else 0
        try:
            with closing(command.read_lines(self.argv(since), silence=SECONDS_OF_SILENCE)) as raw:
                page = collect_page(raw, text=self.text, since=since, redactor=Redactor(known_secrets()))
        except CommandFailed as error:
            # Which starts it knows is its own to say: a journal in memory has but one.
            if self.period in BOOTS and is_unknown_start(error.result.stderr):
                return LogPage((), missing=True)
            raise
        # A journal in memory knows no other start, and says so by printing nothing.
        nothing = self.period == "former-start" and not (page.lines or page.stopped or self.after)
        return replace(page, missing=True) if nothing and not has_former_start() else page


def has_former_start() -> bool:
    """Whether the journal has a line of the start before this one."""
    asked = ["journalctl", "--no-pager", "--quiet", "--output=json", "--boot=-1", "--lines=1"]
    return bool(command.run(asked, timeout=SECONDS_OF_SILENCE).stdout.strip())


def is_unknown_start(said: str) -> bool:
    """Whether journalctl complains that it has no lines of that start of the box."""
    return "No such boot ID" in said or "No journal boot entry found" in said or "No data available" in said


def collect_page(
    raw: Iterable[bytes],
    *,
    text: str,
    since: float,
    redactor: Redactor,
    clock: Callable[[], float] = time.monotonic,
) -> LogPage:
    """A page from the lines of journalctl; it stops reading at the page's end, its bounds, or at
    what is older than ``since``."""
    until, size, wanted = clock() + SECONDS, 0, text.casefold()
    lines: list[LogLine] = []
    after, reached = "", 0.0
    for entry, length in parse_entries(raw):
        size += length
        # At least one line is looked at, so that every page gets further.
        if after and (clock() > until or size > MOST_BYTES):
            return LogPage(tuple(lines), after, reached, stopped=True)
        line = line_of(entry, redactor)
        if line is None:
            continue
        if line.at < since:
            return LogPage(tuple(lines), "", reached)
        if len(lines) == PAGE:
            return LogPage(tuple(lines), after, reached)
        after, reached = cursor_of(entry), line.at
        if wanted in line.text.casefold() or wanted in line.source.casefold():
            lines.append(line)
    return LogPage(tuple(lines), "", reached)


def parse_entries(raw: Iterable[bytes]) -> Iterator[tuple[dict[str, Any], int]]:
    """Each entry with its size in bytes; a line that is none is passed over."""
    for line in raw:
        try:
            entry = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry, len(line)


def cursor_of(entry: dict[str, Any]) -> str:
    cursor = entry.get("__CURSOR")
    return cursor if isinstance(cursor, str) and CURSOR.fullmatch(cursor) else ""


def line_of(entry: dict[str, Any], redactor: Redactor) -> LogLine | None:
    """The line of an entry; None where it has no time."""
    at = field_text(entry.get("__REALTIME_TIMESTAMP"))
    if not (at.isascii() and at.isdecimal() and len(at) <= 17):
        return None
    priority = field_text(entry.get("PRIORITY"))
    unit = field_text(entry.get("_SYSTEMD_UNIT"))
    # Parts of Larder are all called python; systemd knows which one it is.
    own = unit.removesuffix(".service") if unit.startswith("larder-") else ""
    identifier = field_text(entry.get("SYSLOG_IDENTIFIER"))
    own = "" if identifier.startswith("larder-") else own
    source = own or identifier or field_text(entry.get("_COMM")) or "unknown"
    message = entry.get("MESSAGE")
    text = field_text(message) if message is not None else Message("(The message is too long to be shown.)")
    return LogLine(
        int(at) / 1_000_000,
        redactor.hide(clean_text(source))[:60],
        int(priority) if priority in tuple("01234567") else 6,
        redactor.hide(clean_text(text))[:LONGEST],
    )


def field_text(value: object) -> str:
    """A field as text. What is not text comes as a list of bytes, and a field that was set twice as a list of both."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(one, int) and 0 <= one < 256 for one in value):
        return bytes(value).decode(errors="replace")
    if isinstance(value, list):
        return "\n".join(field_text(one) for one in value[:20] if isinstance(one, str | list))
    return ""


# Colours and cursor movements of terminals, whole: without their first byte the rest would be left as litter.
TERMINAL = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[ -/]?[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|.)?", re.DOTALL)


def clean_text(text: str) -> str:
    """Text without what moves a terminal's cursor, is invisible or turns the direction of writing; lines stay lines."""
    shown = TERMINAL.sub("", text[: 2 * LONGEST].replace("\r\n", "\n").replace("\t", "    "))
    return "".join(one if one == "\n" or one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in shown).rstrip()
