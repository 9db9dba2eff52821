from __future__ import annotations

import logging
import sys

import pytest

from appliance.log_format import JournalFormatter


def record(level: int, text: str) -> logging.LogRecord:
    return logging.LogRecord("larder", level, __file__, 1, text, (), None)


@pytest.mark.parametrize(
    ("level", "mark"), [(logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.CRITICAL, 2)]
)
def test_every_line_begins_with_its_severity_where_the_journal_reads(monkeypatch, level, mark):
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    text = JournalFormatter().format(record(level, "first\nsecond"))
    assert [line[:3] for line in text.splitlines()] == [f"<{mark}>"] * 2


def test_a_traceback_has_it_too(monkeypatch):
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    try:
        raise ValueError("canary")
    except ValueError:
        broken = logging.LogRecord("larder", logging.ERROR, __file__, 1, "it broke", (), sys.exc_info())
    lines = JournalFormatter().format(broken).splitlines()
    assert len(lines) > 3
    assert all(line.startswith("<3>") for line in lines)


def test_elsewhere_lines_are_as_they_were(monkeypatch):
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    assert JournalFormatter().format(record(logging.ERROR, "first")) == "ERROR larder: first"
