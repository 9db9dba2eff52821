"""deploy.compiled_code, by what Python then imports."""

from __future__ import annotations

import importlib.util
import marshal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from deploy import compiled_code

ROOT = Path(__file__).parents[3]

SOURCE = '''"""Of the module."""
from __future__ import annotations

class Thing:
    """Of the class."""

    def only_text(self):
        """Of the method."""

    async def later(self):
        """Of the coroutine."""
        return "kept"

def checked(value):
    """Of the function."""
    "a second text"
    assert value, "asked for"
    return value

LINE = __import__("sys")._getframe().f_lineno
'''
SHOW = """
import asyncio, module
from module import *
print([module.__doc__, Thing.__doc__, Thing.only_text.__doc__, Thing.later.__doc__, checked.__doc__])
print(asyncio.run(Thing().later()), Thing().only_text(), module.LINE, checked.__code__.co_filename)
try:
    checked(0)
except AssertionError as error:
    print("asserts:", error)
"""


def run(folder: Path) -> str:
    """What a fresh Python says of the module. It reads compiled files and writes none."""
    return subprocess.run(
        [sys.executable, "-B", "-c", SHOW], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def constants(code: CodeType) -> Iterator[object]:
    """All constants of a code and of the codes in it."""
    for one in code.co_consts:
        yield from constants(one) if isinstance(one, CodeType) else [one]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def test_compiled_files_have_no_docstrings_and_do_the_same(module):
    line = SOURCE.splitlines().index('LINE = __import__("sys")._getframe().f_lineno') + 1
    assert "Of the function." in run(module.parent)
    compiled_code.main([str(module.parent)])
    found = run(module.parent).splitlines()
    assert found == ["[None, None, None, None, None]", f"kept None {line} {module}", "asserts: asked for"]


@pytest.mark.parametrize("source", [SOURCE, SOURCE.replace("    assert value", "    value or None")])
def test_compiled_file_names_the_place_where_the_code_will_be(source, tmp_path, monkeypatch):
    module = tmp_path / "web/module.py"
    module.parent.mkdir()
    module.write_text(source)
    monkeypatch.chdir(tmp_path)
    compiled_code.main(["--seen-at", "/opt/larder/app", "web"])
    code = marshal.loads(Path(importlib.util.cache_from_source(module)).read_bytes()[16:])  # written above
    assert code.co_filename == "/opt/larder/app/web/module.py"
    assert "Of the" not in repr(list(constants(code)))


def test_compiled_file_of_an_unchanged_source_is_kept_and_a_changed_source_counts(module):
    compiled_code.main([str(module.parent)])
    target = Path(importlib.util.cache_from_source(module))
    before = target.stat().st_mtime_ns, target.read_bytes()
    compiled_code.main([str(module.parent)])
    assert (target.stat().st_mtime_ns, target.read_bytes()) == before
    module.write_text(SOURCE.replace('"kept"', '"changed"'))
    assert "changed" in run(module.parent)
    compiled_code.main([str(module.parent)])
    assert target.read_bytes() != before[1]
    assert "changed" in run(module.parent)


def test_file_that_is_no_python_does_not_stop_the_others(module):
    (module.parent / "a_template.py").write_text("{{ name }} = ")
    (module.parent / "no_text.py").write_bytes(b"\xff\xfe\x00")
    compiled_code.main([str(module.parent)])
    assert not Path(importlib.util.cache_from_source(module.parent / "a_template.py")).exists()
    assert "[None, None" in run(module.parent)


def test_installer_compiles_without_the_columns_of_tracebacks(module):
    """They are half of what a compiled file knows of its places. The number of the line stays."""
    calls = [line for line in (ROOT / "deploy/install").read_text().splitlines() if "deploy.compiled_code" in line]
    assert calls and all("-X no_debug_ranges -m deploy.compiled_code" in line for line in calls)
    subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", "-m", "deploy.compiled_code", str(module.parent)],
        cwd=ROOT,
        check=True,
    )
    code = marshal.loads(Path(importlib.util.cache_from_source(module)).read_bytes()[16:])
    inner = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == "checked")
    places = list(inner.co_positions())
    assert {place[2] for place in places} == {None} and places[-1][0] is not None
