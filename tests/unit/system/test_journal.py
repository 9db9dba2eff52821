"""Pages of the journal, from entries made up in the form of journalctl's JSON, and from recorded ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance import command
from appliance.pools import sync_at_shutdown
from appliance.system import journal
from appliance.system.journal import AREAS, LONGEST, PAGE, ReadLog, collect_page, line_of
from appliance.system.redaction import Redactor
from tests.unit.made import recorded_text

PLAIN = Redactor()
UNITS = Path(__file__).parents[3] / "deploy/systemd"
INSTANCE = re.compile(r"[\w-]+@larder\.service")


def entry(number: int, message: object = "a line", **more: object) -> dict[str, Any]:
    return {
        "__CURSOR": f"s=0a;i={number:x};b=1;m=2;t=3;x=4",
        "__REALTIME_TIMESTAMP": str(1_700_000_000_000_000 - number * 1_000_000),
        "SYSLOG_IDENTIFIER": "smbd",
        "PRIORITY": "6",
        "MESSAGE": message,
        **more,
    }


def raw(*entries: object) -> list[bytes]:
    return [json.dumps(one).encode() for one in entries]


def page(*entries: object, text: str = "", since: float = 0) -> journal.LogPage:
    return collect_page(raw(*entries), text=text, since=since, redactor=PLAIN)


def test_area_of_larder_has_every_unit_that_is_installed_for_it():
    installed = {path.name for path in UNITS.iterdir() if path.suffix in {".service", ".socket"}}
    assert "larder-worker.service" in installed
    # Of templates those that larder-worker.service and its kind start; nginx has nothing else to do on the box.
    named = {name for path in UNITS.glob("*.service") for name in INSTANCE.findall(path.read_text())}
    assert named == {"redis-server@larder.service"}
    installed.remove("larder-shutdown@.service")
    named |= {f"larder-shutdown@{kind}.service" for kind in sync_at_shutdown.ENDS}
    shown = {word.removeprefix("UNIT=") for word in AREAS["larder"] if word.startswith("UNIT=")}
    assert shown == installed | named | {"nginx.service"}


def test_page_holds_so_many_lines_and_the_cursor_goes_on_without_a_gap():
    entries = [entry(number, f"line {number}") for number in range(PAGE + 7)]
    first = page(*entries)
    assert [line.text for line in first.lines] == [f"line {number}" for number in range(PAGE)]
    assert first.after == entries[PAGE - 1]["__CURSOR"]
    second = page(*entries[PAGE:])
    assert [line.text for line in second.lines] == [f"line {number}" for number in range(PAGE, PAGE + 7)]
    assert second.after == ""


def test_exactly_one_page_has_nothing_older():
    assert page(*(entry(number) for number in range(PAGE))).after == ""


def test_text_is_looked_for_in_messages_and_programs_whatever_its_case():
    found = page(
        entry(1, "Disk SDB failed"), entry(2, "all is well"), entry(3, "x", SYSLOG_IDENTIFIER="sdbd"), text="sdb"
    )
    assert [line.text for line in found.lines] == ["Disk SDB failed", "x"]


def test_what_is_older_than_the_time_ends_the_page():
    found = page(entry(0), entry(10), entry(20), since=1_700_000_000 - 15)
    assert len(found.lines) == 2
    assert found.after == ""


def test_page_that_takes_too_long_stops_after_one_line_at_least_and_says_where():
    ticks = iter(range(0, 10_000, 100))
    found = collect_page(
        raw(*(entry(number) for number in range(50))),
        text="nothing has this",
        since=0,
        redactor=PLAIN,
        clock=lambda: next(ticks),
    )
    assert found.stopped
    assert found.lines == ()
    assert found.after == entry(0)["__CURSOR"]
    assert found.reached == 1_700_000_000


def test_page_is_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(journal, "MOST_BYTES", 2000)
    found = page(*(entry(number, "x" * 500) for number in range(50)))
    assert found.stopped
    assert 1 <= len(found.lines) <= 4


def test_recorded_lines_are_read_with_their_times_programs_and_severities():
    found = collect_page(recorded_text("journalctl-252.json").encode().splitlines(), text="", since=0, redactor=PLAIN)
    assert [(line.source, line.priority, line.text) for line in found.lines] == [
        ("zed", 6, "second line"),
        ("zed", 6, "first line"),
        (
            "nmbd",
            5,
            (
                "canary-hostile <script>alert(1)</script>\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}back "
                "\N{REPLACEMENT CHARACTER}"
            ),
        ),
        ("sshd", 4, "canary-login refused"),
        ("smartd", 3, "canary-disk on ata3"),
    ]
    assert found.reached == 1795505842.307357


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("a\x00b\x07", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
        ("a\u202eb", "a\N{REPLACEMENT CHARACTER}b"),
        ("first\nsecond\r\nthird", "first\nsecond\nthird"),
        ([0xFF, 0xFE, 0x41], "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}A"),
        (["one", "two"], "one\ntwo"),
        (None, "(The message is too long to be shown.)"),
        ("x" * 5000, "x" * LONGEST),
        ({"odd": 1}, ""),
    ],
)
def test_hostile_messages_become_bounded_plain_text(message, text):
    line = line_of(entry(1, message), PLAIN)
    assert line is not None
    assert line.text == text


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(["__CURSOR", "__REALTIME_TIMESTAMP", "PRIORITY", "MESSAGE", "SYSLOG_IDENTIFIER", "_COMM"])


@given(odd=st.lists(st.dictionaries(fields, values, max_size=6), max_size=5))
def test_no_entry_whatever_it_holds_breaks_a_page(odd):
    found = collect_page(raw(*odd, entry(1)), text="", since=0, redactor=PLAIN)
    assert found.lines[-1].text == "a line"
    for line in found.lines:
        assert all(letter == "\n" or letter.isprintable() for letter in line.text + line.source)
    msgspec.json.encode(found)


@given(noise=st.lists(st.binary(max_size=60).filter(lambda one: b"\n" not in one), max_size=5))
def test_bytes_that_are_no_entry_are_passed_over(noise):
    found = collect_page([*noise, *raw(entry(1))], text="", since=0, redactor=PLAIN)
    assert [line.text for line in found.lines][-1:] == ["a line"]


@pytest.mark.parametrize(
    ("identifier", "unit", "source"),
    [
        ("python", "larder-worker.service", "larder-worker"),
        ("larder-sign-in", "larder-web.service", "larder-sign-in"),
        ("sshd", "ssh.service", "sshd"),
        ("", "", "unknown"),
    ],
)
def test_parts_of_larder_are_called_by_their_names(identifier, unit, source):
    line = line_of(entry(1, SYSLOG_IDENTIFIER=identifier, _SYSTEMD_UNIT=unit), PLAIN)
    assert line is not None
    assert line.source == source


def test_secrets_are_hidden_in_messages_and_names():
    line = line_of(entry(1, "token=abcdef", SYSLOG_IDENTIFIER="password=abc"), PLAIN)
    assert line is not None
    assert "abc" not in line.text + line.source


def test_command_asks_for_area_severity_and_time_with_one_beginning(commands, monkeypatch):
    ReadLog(area="storage", severity="error", period="hour").read()
    (argv,) = commands.ran
    assert argv[0] == "journalctl"
    assert "--priority=3" in argv
    assert "_TRANSPORT=kernel" in argv
    assert [word for word in argv if word.startswith("--since=@")]
    cursor = entry(1)["__CURSOR"]
    further = ReadLog(area="all", severity="all", period="hour", after=cursor).argv(since=7)
    assert f"--after-cursor={cursor}" in further
    assert not [word for word in further if word.startswith("--since")]
    assert "--boot=-1" in ReadLog(period="former-start").argv(since=0)


def test_a_journal_in_memory_has_no_former_start_and_says_so_by_nothing(commands):
    assert ReadLog(period="former-start").read().missing
    assert commands.ran[-1][-2:] == ["--boot=-1", "--lines=1"]
    commands.on_run = lambda argv: commands.answers.update(journalctl="{}" if "--lines=1" in argv else "")
    found = ReadLog(period="former-start").read()
    assert (found.lines, found.missing) == ((), False)


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("Data from the specified boot (-1) is not available: No such boot ID in journal\n", True),
        ("Failed to open journal: Permission denied\n", False),
    ],
)
def test_a_start_that_the_journal_does_not_know_is_said_and_other_failures_are_not_taken_for_it(
    monkeypatch, said, known
):
    def fail(argv, *, silence):
        raise command.CommandFailed(command.Result(tuple(argv), 1, "", said, 0.1))
        yield b""

    monkeypatch.setattr(command, "read_lines", fail)
    if known:
        assert ReadLog(period="former-start").read().missing
    else:
        with pytest.raises(command.CommandFailed):
            ReadLog(period="former-start").read()
