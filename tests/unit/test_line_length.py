"""No line of Python has more than 120 columns, and none is kept from the formatter without a reason."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for top in ("appliance", "web", "workers", "deploy", "tests")
    for path in sorted((ROOT / top).rglob("*.py"))
    if "migrations" not in path.parts
]
MOST = 120
# What the formatter does not count either.
DIRECTIVE = re.compile(r"  # (?:noqa: [A-Z0-9, ]+|type: ignore\[[a-z, -]+\])$")
BARE_SKIP = re.compile(r"[^#]*# fmt: (?:skip|off)\s*")
WITH_DOCSTRINGS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstring_lines(text: str) -> set[int]:
    """Where each docstring begins."""
    bodies = [node.body for node in ast.walk(ast.parse(text)) if isinstance(node, WITH_DOCSTRINGS) and node.body]
    firsts = [body[0].value for body in bodies if isinstance(body[0], ast.Expr)]
    return {first.lineno for first in firsts if isinstance(first, ast.Constant)}


def wide_lines(text: str) -> Iterator[int]:
    """Numbers of lines that are too wide. A string of several lines may be a program in another language."""
    docstrings, within = docstring_lines(text), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and token.end[0] > token.start[0] and token.start[0] not in docstrings:
            within |= {*range(token.start[0], token.end[0] + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        if len(DIRECTIVE.sub("", line)) > MOST and number not in within:
            yield number


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_line_of_python_has_more_than_120_columns():
    wide = {name_of(path): found for path in FILES if (found := list(wide_lines(path.read_text())))}
    assert wide == {}


def test_nothing_is_kept_from_the_formatter_without_a_reason():
    bare = {name_of(path) for path in FILES if any(BARE_SKIP.fullmatch(line) for line in path.read_text().splitlines())}
    assert bare == set()


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        (f"x = {'1' * 117}\n", [1]),
        (f"x = {'1' * 116}\n", []),
        (f"x = {'1' * 116}  # noqa: F811\n", []),
        (f'"""{"a " * 60}"""\n', [1]),
        (f'x = """\n{"a " * 70}\n"""\n', []),
    ],
)
def test_the_search_finds_wide_lines(text, wide):
    assert list(wide_lines(text)) == wide


def test_the_search_finds_what_is_kept_from_the_formatter_without_a_reason():
    assert BARE_SKIP.fullmatch("x = 1  # fmt: skip")
    assert BARE_SKIP.fullmatch("# fmt: off")
    assert not BARE_SKIP.fullmatch("x = 1  # one row a line  # fmt: skip")
