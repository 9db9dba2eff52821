"""Compile Python files without their docstrings: ``python -m deploy.compiled_code FOLDER… [--seen-at FOLDER]``.

Nothing that runs reads docstrings, and each process would keep three megabytes of them. Assertions stay,
unlike with Python's -OO, which also would need compiled files of its own for the standard library. Run
it with ``-X no_debug_ranges``: half a megabyte in each process would tell the columns of code in
tracebacks, which name the line anyway.
"""

from __future__ import annotations

import argparse
import ast
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

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
    # Python's own way takes half the time, but leaves out assertions too.
    if b"assert" not in source and b"__debug__" not in source:
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


class Compiler(SourceFileLoader):
    """Python's loader: it keeps the compiled file of an unchanged source, and replaces one in a single step."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path.stem, str(path))
        self.seen_as = name

    # importlib.abc.InspectLoader
    def source_to_code(self, data: Any, path: Any, **_more: Any) -> CodeType:  # type: ignore[override]
        return code_without_docstrings(data, self.seen_as)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m deploy.compiled_code")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seen-at", type=Path, help="the folder that tracebacks name in place of the current one")
    asked = parser.parse_args(arguments)
    sys.dont_write_bytecode = False  # this module itself may be run from a place where nothing is to be written
    for folder in asked.folders:
        for path in sorted(folder.rglob("*.py")):
            compiler = Compiler(path, str(asked.seen_at / path if asked.seen_at else path))
            try:
                compiler.get_code(compiler.name)
            except (SyntaxError, ValueError):
                pass  # no Python 3, such as a template of a package


if __name__ == "__main__":
    main(sys.argv[1:])
