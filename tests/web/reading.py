"""Read a page as a browser does: its text, its attributes, its forms."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "input", "img", "br", "hr", "use", "area", "base", "col", "embed", "source", "track", "wbr"}
ADDRESSES = {"href", "src", "action", "formaction", "hx-get", "hx-post", "poster", "xlink:href"}


@dataclass
class Form:
    action: str
    method: str
    values: list[tuple[str, str]] = field(default_factory=list)

    @property
    def data(self) -> dict[str, str]:
        return dict(self.values)


class Page(HTMLParser):
    """``elements`` is every element with its attributes; ``texts`` what a person reads."""

    def __init__(self, response: Any) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.script_texts: list[str] = []
        self.forms: list[Form] = []
        self.open: list[str] = []
        self.select = ""
        self.feed(response.content.decode())
        self.close()

    def updatepos(self, i: int, j: int) -> int:
        return j  # nobody asks for lines and columns, and counting them takes a tenth of the time

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.elements.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "form":
            self.forms.append(Form(found.get("action", ""), found.get("method", "get")))
        if tag == "input" and self.forms and "form" in self.open and found.get("name"):
            chosen = found.get("type") not in {"checkbox", "radio"} or "checked" in found
            if chosen:
                plain = "on" if found.get("type") == "checkbox" else ""
                self.forms[-1].values.append((found["name"], found.get("value", plain)))
        if tag == "select":
            self.select = found.get("name", "")
        if tag == "option" and "selected" in found and self.forms:
            self.forms[-1].values.append((self.select, found.get("value", "")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in {"script", "style"}:
            if data.strip():
                self.script_texts.append(data)
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All words, with plain spaces between."""
        return " ".join(" ".join(self.texts).split())

    def form(self, action: str = "", *, of: str = "") -> Form:
        """The one form of the page's own content with that action, or the one that has a field ``of``."""
        found = [
            form
            for form in self.forms
            if form.action != "/logout/" and form.action == action and (not of or of in dict(form.values))
        ]
        assert len(found) == 1, [form.action for form in self.forms]
        return found[0]

    def field_error(self, name: str) -> str:
        """What is said at a field, by the id that the field is described by."""
        described = [found.get("id", "") for _tag, found in self.elements]
        return name if f"{name}_error" in described or f"{name}-error" in described else ""


@lru_cache(maxsize=4)  # tests look for several words in one answer
def text_of(response: Any) -> str:
    return Page(response).text


def assert_nothing_inline(response: Any) -> Page:
    """What the policy forbids would be dead on the page: better that it is not there. Returns the page."""
    page = Page(response)
    assert page.script_texts == []
    for tag, attributes in page.elements:
        assert tag not in {"style", "iframe", "object", "embed", "base"}
        if tag == "script":
            assert attributes["src"].startswith("/static/")
        for name, value in attributes.items():
            assert name != "style", (tag, attributes)
            assert not name.startswith(("on", "hx-on")), (tag, attributes)
            if name in ADDRESSES:
                assert value.startswith(("/", "?", "#")), (tag, attributes)
    return page
