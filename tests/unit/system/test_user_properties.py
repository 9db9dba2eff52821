"""One module holds the names of Larder's ZFS properties."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from appliance.facts import user_properties

ROOT = Path(__file__).parents[3]
NAME = re.compile(r"larder:[a-z({]")


def literals(source: str) -> Iterator[str]:
    """Every text that is written out, except docstrings."""
    tree = ast.parse(source)
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    notes = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield node.value


def test_no_other_module_spells_a_property_of_larder():
    assert [text for text in literals('"""larder:a"""\nx = "a,larder:run"') if NAME.search(text)] == ["a,larder:run"]
    paths = [path for folder in ("appliance", "web", "workers") for path in (ROOT / folder).rglob("*.py")]
    spelled = {path for path in paths if any(map(NAME.search, literals(path.read_text(encoding="utf-8"))))}
    spelled |= {path for path in (ROOT / "templates").rglob("*.html") if NAME.search(path.read_text(encoding="utf-8"))}
    assert spelled == set()


def test_names_are_those_that_disks_in_use_carry():
    """They are stored in pools: none may ever change."""
    stored = {name: value for name, value in vars(user_properties).items() if name.isupper()}
    assert stored == {
        "PREFIX": "larder:",
        "SHARE": "larder:share",
        "POLICY": "larder:policy",
        "ACCESS": "larder:access",
        "PRESET": "larder:preset",
        "UNLOCK": "larder:unlock",
        "BENCHMARK": "larder:sweep",
        "RUN": "larder:run",
        "NOTE": "larder:note",
        "BACKUP": "larder:backup",
        "COPY_OF": "larder:copy-of",
        "ORIGIN": "larder:origin",
        "COPIED": "larder:copied",
        "SENT": "larder:sent",
        "DRILL": "larder:drill",
        "BOX": "larder:box",
        "REHEARSAL": "larder:rehearsal",
        "TASK": "larder:task",
        "RECEIVES": "larder:receives",
        "RESTORE": "larder:restore",
    }
