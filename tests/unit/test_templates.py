"""What holds for every template and script: disclosures show that they open, htmx evaluates
nothing, scripts stay small."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEMPLATES = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.glob("templates/**/*.html"))}
# Their summaries have a triangle (web/static/larder.css); those of a menu have an arrow of their own.
SHOWS_THAT_IT_OPENS = re.compile(r'class="[^"]*\b(disclosure|log|menu)\b')
MOST_LINES = 120


def found(pattern: str) -> dict[str, list[str]]:
    return {name: every for name, text in TEMPLATES.items() if (every := re.findall(pattern, text))}


def test_every_disclosure_shows_that_it_opens():
    opened = [(name, tag) for name, tags in found(r"<details[^>]*>").items() for tag in tags]
    assert len(opened) > 30
    assert [one for one in opened if not SHOWS_THAT_IT_OPENS.search(one[1])] == []


def test_no_trigger_has_a_filter_which_htmx_would_evaluate():
    triggers = [trigger for every in found(r'hx-trigger="([^"]*)"').values() for trigger in every]
    assert triggers
    assert [trigger for trigger in triggers if "[" in trigger] == []
    assert found(r"\bhx-(?:on|vars|vals=.js:)") == {}


def test_script_keeps_only_what_htmx_cannot_do():
    assert len((ROOT / "web/static/larder.js").read_text().splitlines()) < MOST_LINES
