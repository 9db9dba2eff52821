"""Compile Python files without their docstrings: ``python -m deploy.compiled_code FOLDER… [--seen-at FOLDER]``.

Nothing that runs reads docstrings, and each process would keep three megabytes of them. Assertions stay, unlike with
Python's -OO, which also would need compiled files of its own for the standard library.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import marshal
import struct
import sys
from pathlib import Path
from types import CodeType

# Where the tree keeps a docstring: https://docs.python.org/3/library/ast.html#ast.get_docstring
HOLDERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def code_without_docstrings(source: bytes, name: str) -> CodeType:
    """The code of a module. Raises SyntaxError, and ValueError for a file that is no text."""
    if (
        b"assert" not in source and b"__debug__" not in source
    ):  # Python's own way takes half the time, and leaves out assertions too
        plain: CodeType = compile(source, name, "exec", dont_inherit=True, optimize=2)
        return plain
    tree = ast.parse(source, name)
    for node in ast.walk(tree):
        if isinstance(node, HOLDERS):
            while node.body and is_docstring(node.body[0]):
                del node.body[0]
            if not node.body and not isinstance(node, ast.Module):
                node.body.append(ast.Pass(lineno=node.lineno, col_offset=node.col_offset))
    code: CodeType = compile(tree, name, "exec", dont_inherit=True)
    return code


def header(path: Path) -> bytes:
    """The first 16 bytes of a compiled file that belongs to this source (PEP 552, checked by time and size)."""
    found = path.stat()
    return importlib.util.MAGIC_NUMBER + struct.pack(
        "<III", 0, int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF
    )


def compile_file(path: Path, name: str) -> None:
    """Write the compiled file, unless it is there for this very source. A file that is no Python 3 is passed over."""
    target = Path(importlib.util.cache_from_source(path))
    wanted = header(path)
    try:
        with target.open("rb") as existing:
            if existing.read(len(wanted)) == wanted:
                return
    except FileNotFoundError:
        target.parent.mkdir(exist_ok=True)
    try:
        code = code_without_docstrings(path.read_bytes(), name)
    except (SyntaxError, ValueError):
        return
    target.write_bytes(wanted + marshal.dumps(code))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m deploy.compiled_code")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seen-at", type=Path, help="the folder that tracebacks name in place of the current one")
    asked = parser.parse_args(arguments)
    for folder in asked.folders:
        for path in sorted(folder.rglob("*.py")):
            compile_file(path, str(asked.seen_at / path if asked.seen_at else path))


if __name__ == "__main__":
    main(sys.argv[1:])
