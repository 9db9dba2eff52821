"""What a person may send with the forms of a page: as it stands there, with everything emptied, and nonsense."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

NEVER = {"/logout/"}  # it would end the crawl
TYPED = {"text", "search", "number", "email", "password", "url", "textarea"}
NONSENSE = {"number": "-1"}


@dataclass
class FormField:
    """``values``: those that it has on the page; ``kind`` is its type, or the name of its tag."""

    name: str
    kind: str
    values: list[str]


@dataclass
class PageForm:
    action: str
    method: str
    fields: list[FormField] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Submission:
    """``key`` is the same for forms that differ only in the thing that they are about."""

    method: str
    path: str
    data: dict[str, list[str]]
    key: str


class FormReader(HTMLParser):
    """The forms of a page with their fields."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self.inside = False
        self.select: FormField | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if tag == "form":
            self.inside = True
            self.forms.append(PageForm(found.get("action", ""), found.get("method", "get").lower()))
        if not self.inside:
            return
        name, form = found.get("name", ""), self.forms[-1]
        if tag == "button" and name:
            form.buttons.append((name, found.get("value", "")))
        elif tag == "input" and name:
            kind = found.get("type", "text")
            chosen = kind not in {"checkbox", "radio"} or "checked" in found
            form.fields.append(FormField(name, kind, [found.get("value", "on")] if chosen else []))
        elif tag == "textarea" and name:
            form.fields.append(FormField(name, tag, [""]))
        elif tag == "select" and name:
            self.select = FormField(name, tag, [])
            form.fields.append(self.select)
        elif tag == "option" and self.select and "selected" in found:
            self.select.values.append(found.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False
        elif tag == "select":
            self.select = None


def values_of(form: PageForm, how: str) -> dict[str, list[str]]:
    """The answers of a form: ``as it is``, ``emptied``, or ``nonsense``."""
    found: dict[str, list[str]] = {}
    for one in form.fields:
        values = one.values
        if one.kind != "hidden" and how == "emptied":
            values = [""] if one.kind in TYPED else []
        elif how == "nonsense" and one.kind in {*TYPED, "select"}:
            values = [NONSENSE.get(one.kind, "no such / thing")]
        found.setdefault(one.name, []).extend(values)
    return {name: values for name, values in found.items() if values}


def submissions(
    path: str, page: str, hows: tuple[str, ...] = ("as it is", "emptied", "nonsense")
) -> Iterator[Submission]:
    """Everything that may be sent from a page."""
    reader = FormReader()
    reader.feed(page)
    for form in reader.forms:
        action = form.action or path
        if action.partition("?")[0] in NEVER or not action.startswith("/") or form.method not in {"get", "post"}:
            continue
        names = sorted({one.name for one in form.fields})
        for how in hows:
            for button in form.buttons or [("", "")]:
                data = values_of(form, how) | ({button[0]: [button[1]]} if button[0] else {})
                shape = re.sub(r"[^/]*\d[^/]*", "0", action.partition("?")[0])
                yield Submission(form.method, action, data, f"{form.method} {shape} {names} {button} {how}")
