"""All messages of the product: what templates and code say, as a catalogue lists it. Needs no GNU gettext.

In templates ``translate``, ``blocktranslate`` and ``_("…")``; in code ``gettext``, ``ngettext``, ``lazy_text``,
``lazy_format``, the templates of ``Reason`` and ``Message``, and ``message_template``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.template.base import Lexer, TokenType
from django.utils.text import smart_split
from django.utils.translation import trim_whitespace

ROOT = Path(__file__).resolve().parents[2]
QUOTED = r"""(?:"([^"]*)"|'([^']*)')"""
TRANSLATE = re.compile(rf"translate\s+{QUOTED}")
ARGUMENT = re.compile(rf"_\({QUOTED}\)")
# Pages of the recorded boxes only.
DEVELOPERS_PAGES = "components"


@dataclass(frozen=True)
class Found:
    """A message where it was found. ``plural`` is empty for most; ``note`` is for who translates it."""

    message: str
    plural: str
    file: str
    note: str = ""


def templates() -> list[Path]:
    return sorted(path for path in ROOT.glob("templates/**/*.html") if not path.name.startswith(DEVELOPERS_PAGES))


def code() -> list[Path]:
    return sorted(path for top in ("appliance", "web", "workers") for path in ROOT.glob(f"{top}/**/*.py"))


def escaped(text: str) -> str:
    """As Django looks it up: it formats what it finds by ``%``."""
    return text.replace("%", "%%")


def in_template(text: str, file: str) -> Iterator[Found]:
    block: list[str] | None = None
    parts: list[str] = []
    for token in Lexer(text).tokenize():
        words = token.contents
        if block is not None and token.token_type == TokenType.BLOCK:
            if words.strip() == "plural":
                parts.append("")
                continue
            done = [trim_whitespace(part) if "trimmed" in block else part for part in parts]
            yield Found(done[0], done[1] if len(done) > 1 else "", file)
            block = None
        elif block is not None:
            parts[-1] += escaped(words) if token.token_type == TokenType.TEXT else f"%({words.strip()})s"
        elif token.token_type in (TokenType.BLOCK, TokenType.VAR):
            for groups in ARGUMENT.findall(words):
                yield Found(escaped("".join(groups)), "", file)
            if match := TRANSLATE.match(words):
                yield Found(escaped(match.group(1) or match.group(2)), "", file)
            elif words.startswith("blocktranslate"):
                block, parts = list(smart_split(words)), [""]


def text_of(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def in_code(text: str, file: str) -> Iterator[Found]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        first, second, *_rest = [*map(text_of, node.args), "", ""]
        if name in ("gettext", "lazy_text", "lazy_format", "Message", "message_template") and first:
            yield Found(first, "", file)
        elif name == "ngettext" and first:
            yield Found(first, second, file)
        elif name == "Reason" and second:
            yield Found(second, "", file, f"Why something is refused: {first}")


def messages() -> Iterator[Found]:
    """Every message, wherever it is; one that is used twice comes twice."""
    for path in templates():
        yield from in_template(path.read_text(), str(path.relative_to(ROOT)))
    for path in code():
        yield from in_code(path.read_text(), str(path.relative_to(ROOT)))
