"""Abbreviated months are written as the language of the reader writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.template import Context, Template
from django.utils.translation import override

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"
SHORT = re.compile(r"""\|date:["']([^"']*M[^"']*)["']""")
PATTERNS = sorted({found for path in TEMPLATES.rglob("*.html") for found in SHORT.findall(path.read_text())})
AT = datetime(2026, 1, 17, 9, 41, tzinfo=UTC)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_short_date_has_a_small_month_in_dutch_and_a_capital_one_in_english(pattern):
    template = Template(f'{{{{ at|date:"{pattern}" }}}}')
    with override("en-gb"):
        assert template.render(Context({"at": AT})).startswith("17 Jan")
    with override("nl"):
        assert template.render(Context({"at": AT})).startswith("17 jan")


def test_dutch_months_are_those_of_dutch():
    template = Template("{% for at in all %}{{ at|date:'j M' }}, {% endfor %}")
    with override("nl"):
        said = template.render(Context({"all": [datetime(2026, month, 2, tzinfo=UTC) for month in (3, 5, 10)]}))
    assert said == "2 mrt, 2 mei, 2 okt, "


def test_no_date_is_none():
    with override("nl"):
        assert Template("{{ at|date:'j M' }}").render(Context({"at": None})) == ""
