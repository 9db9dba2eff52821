"""Reasons by their codes: helpers for tests, and the list of all sentences in ``tests/unit/reasons.txt``.

``python -m tests.reasons`` writes that list anew; read its difference before you commit it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.http import HttpResponse

from appliance.errors import Reason, Refused

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests/unit/reasons.txt"


def codes(reasons: Iterable[Reason]) -> list[str]:
    """The codes of reasons, in their order: what ``Operation.check`` found."""
    return [reason.code for reason in reasons]


@contextmanager
def expect_refusal(*expected: str) -> Iterator[None]:
    """Refused for these reasons, in any order."""
    with pytest.raises(Refused) as caught:
        yield
    assert sorted(codes(caught.value.reasons)) == sorted(expected), caught.value


def codes_on_page(response: HttpResponse) -> list[str]:
    """The codes of the reasons that a page shows above its form or instead of what was asked for."""
    return re.findall(r'data-code="([^"]*)"', response.content.decode())


def codes_of_form(response: HttpResponse, field: str | None = None) -> list[str]:
    """The codes of the errors of a page's form, or of one of its fields (``__all__``: of the form as a whole)."""
    errors = response.context["form"].errors.as_data()  # type: ignore[attr-defined]  # the test client adds it
    return [error.code for name in ([field] if field else errors) for error in errors.get(name, ())]


def reasons_in(tree: ast.Module) -> Iterator[tuple[int, str | None, str | None]]:
    """Line, code and template of each reason made in a module; None where one is not written out there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reason":
            values = [argument.value if isinstance(argument, ast.Constant) else None for argument in node.args]
            code, template = [*values, None, None][:2]
            yield node.lineno, str(code) if code else None, str(template) if template else None


def sources() -> Iterator[Path]:
    for top in ("appliance", "web", "workers"):
        yield from sorted((ROOT / top).glob("**/*.py"))


def written_out() -> str:
    """All reasons of the product, a line each: its code, then its sentence."""
    found = {
        f"{code}: {template}"
        for path in sources()
        for _line, code, template in reasons_in(ast.parse(path.read_text()))
        if code and template
    }
    return "".join(f"{line}\n" for line in sorted(found))


def not_written_out() -> list[str]:
    """``file:line`` of each reason that lacks a literal code or template."""
    return [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources()
        for line, code, template in reasons_in(ast.parse(path.read_text()))
        if code is None or template is None
    ]


if __name__ == "__main__":
    GOLDEN.write_text(written_out())
    print(*not_written_out(), sep="\n")
