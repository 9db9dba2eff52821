"""Look at pages of a recorded box in a browser: open what can be opened, and say what is wrong."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, BrowserContext, Page, Response

from tests.gallery.pages import EXEMPT, WITHOUT_RULES
from tests.gallery.serve import NOW

WIDTHS = (320, 768, 1280)
THEMES = ("light", "dark")
HEIGHT = 900
PATIENCE = 300_000  # milliseconds; only the end of it, on a slow computer
LARGEST_PAGE, LARGEST_VISIT = 60_000, 120_000  # bytes on the wire, with the compression of deploy/nginx/larder.conf
CHECKS = Path(__file__).with_name("checks.js").read_text()
FORMS = "main form:has(input:not([type=hidden]), select, textarea)"
LONG = "a-name-that-somebody-made-as-long-as-it-may-be-" * 5
# Where things moved once the page was there, without anybody having touched it.
NOTE_SHIFTS = """
window.shifts = [];
window.parsed = Infinity;
addEventListener("DOMContentLoaded", (event) => { window.parsed = event.timeStamp; }, { capture: true });
new PerformanceObserver((list) => {
  for (const one of list.getEntries())
    if (!one.hadRecentInput && one.startTime > window.parsed)
      window.shifts.push([one.value, one.sources.map(({ node }) => (node?.className ?? node?.parentElement?.className) || node?.nodeName).join(", ")]);
}).observe({ type: "layout-shift", buffered: true });
"""
OPEN_ALL = "for (const one of document.querySelectorAll('details:not(.menu)')) one.open = true;"
RUN_AXE = (
    "(options) => axe.run(document, {resultTypes: ['violations'], ...options}).then((found) => "
    "found.violations.map((one) => [one.id, one.impact, one.nodes.map((node) => node.html.slice(0, 160))]))"
)
# Menus and helps stand alone: each is opened, looked at, and closed.
OPEN_LAYERS = """() => {
  const found = [], width = document.documentElement.clientWidth;
  const look = (list, from) => {
    const box = list.getBoundingClientRect();
    if (!box.width) return found.push([from, "does not open"]);
    if (box.left < -0.5 || box.right > width + 0.5) found.push([from, `lies from ${Math.round(box.left)} to ${Math.round(box.right)} of ${width} px`]);
    for (const one of [list, ...list.querySelectorAll("*")]) if (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline" && !one.closest("svg")) found.push([from, `“${one.textContent.trim().slice(0, 40)}” does not fit into it`]);
  };
  for (const menu of [...document.querySelectorAll("details.menu")].filter((one) => one.checkVisibility()).slice(0, 6)) {
    menu.open = true; look(menu.querySelector(".menu-list"), `menu “${menu.querySelector("summary").textContent.trim().replace(/\\s+/g, " ")}”`); menu.open = false;
  }
  for (const help of [...document.querySelectorAll("[popover]")].filter((one) => one.parentElement.checkVisibility())) {
    help.showPopover(); look(help, `help “${help.textContent.trim().slice(0, 40)}”`); help.hidePopover();
  }
  for (const dialog of document.querySelectorAll("dialog")) { dialog.showModal(); look(dialog, "dialog"); dialog.close(); }
  return found;
}"""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, and where."""

    page: str
    width: int
    theme: str
    state: str
    kind: str
    where: str
    text: str
    detail: str

    def __str__(self) -> str:
        return (
            f"{self.page} at {self.width} px, {self.theme}, {self.state}: {self.kind}: {self.detail} · "
            f"{self.where} “{self.text}”"
        )


def collapse(found: Iterable[Finding]) -> list[str]:
    """Each thing that is wrong once, with the other places where it was seen."""
    places: dict[tuple[str, ...], list[Finding]] = {}
    for one in found:
        places.setdefault((one.page, one.kind, one.where, one.text), []).append(one)
    return [
        f"{group[0]}"
        + (f" (also at {', '.join(sorted({f'{one.width} px' for one in group[1:]}))})" if group[1:] else "")
        for group in places.values()
    ]


class Gallery:
    """A browser's windows onto one recorded box."""

    def __init__(self, browser: Browser, address: str, locale: str = "en-GB") -> None:
        self.browser, self.address, self.locale = browser, address, locale
        self.context: BrowserContext | None = None
        self.box, self.samples = "", dict[str, list[str]]()

    def open_box(self, box: str) -> None:
        """Have the server fill the box, unless it is the one that is open."""
        if self.box == box:
            return
        self.close()
        self.context = self.browser.new_context(base_url=self.address, reduced_motion="reduce", locale=self.locale)
        self.context.add_init_script(NOTE_SHIFTS)
        self.context.clock.set_fixed_time(NOW)
        self.context.set_default_timeout(PATIENCE)
        self.context.set_default_navigation_timeout(PATIENCE)
        answer = self.context.request.get(f"/gallery/{box}/", timeout=PATIENCE)
        assert answer.ok, f"{box}: {answer.status}"
        self.box, self.samples = box, answer.json()

    def close(self) -> None:
        if self.context:
            self.context.close()
        self.context, self.box = None, ""

    def look_at(
        self, name: str, *, signed_in: bool = True, widths: tuple[int, ...] = WIDTHS, most: int = 99
    ) -> Iterator[Finding]:
        """What is wrong with the samples of that page."""
        assert self.context
        cookies = self.context.cookies()
        if not signed_in:
            self.context.clear_cookies()
        page = self.context.new_page()
        try:
            for path in self.samples[name][:most]:
                yield from look_at_path(page, path, widths)
        finally:
            page.close()
            self.context.clear_cookies()
            kept = [{key: value for key, value in one.items() if key != "partitionKey"} for one in cookies]
            # what cookies() gives, without what it does not take
            self.context.add_cookies(kept)  # type: ignore[arg-type]


def look_at_path(page: Page, path: str, widths: tuple[int, ...]) -> Iterator[Finding]:
    """One address at these widths and in both themes, as it loads, with all opened, and
    after its forms were refused."""
    for width in widths:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.emulate_media(color_scheme="light")
        answer = page.goto(path)
        if answer is None or answer.status == 404 or strip(answer.url) != strip(path):
            return  # the box has nothing of this kind: tests/gallery/test_gallery.py sees that another box has
        at = Place(path, width, "light", "as loaded")
        if answer.status >= 500:
            yield at.finding("error of the server", "", "", str(answer.status))
            return
        if width == widths[0]:
            yield from weigh(at, page, answer)
        yield from shifts(at, page)
        yield from checked(at, page)
        page.evaluate(OPEN_ALL)
        at = Place(path, width, "light", "all opened")
        yield from checked(at, page)
        page.evaluate(AXE_SCRIPT)
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            yield from read_by_axe(Place(path, width, theme, "all opened"), page)
        page.emulate_media(color_scheme="light")
        for where, detail in page.evaluate(OPEN_LAYERS):
            yield at.finding("layer", where, "", detail)
        yield from look_at_errors(page, path, width)


def strip(url: str) -> str:
    """The path of an address."""
    return (
        url.split("?")[0].split("#")[0].removeprefix("http://").partition("/")[2].strip("/")
        if "://" in url
        else url.split("?")[0].strip("/")
    )


@dataclass(frozen=True)
class Place:
    page: str
    width: int
    theme: str
    state: str

    def finding(self, kind: str, where: str, text: str, detail: str) -> Finding:
        return Finding(self.page, self.width, self.theme, self.state, kind, where, text, detail)


def checked(at: Place, page: Page) -> Iterator[Finding]:
    for one in page.evaluate(CHECKS, {kind: list(chosen) for kind, chosen in EXEMPT.items()}):
        yield at.finding(one["kind"], one["where"], one["text"], one["detail"])


def read_by_axe(at: Place, page: Page) -> Iterator[Finding]:
    rules = {"rules": {rule: {"enabled": False} for rule in WITHOUT_RULES}}
    # Only colours differ between the themes.
    found: list[Any] = page.evaluate(RUN_AXE, {"runOnly": ["color-contrast"]} if at.theme == "dark" else rules)
    for rule, impact, nodes in found:
        yield at.finding(f"axe, {impact}", rule, nodes[0], f"{len(nodes)} times")


def shifts(at: Place, page: Page) -> Iterator[Finding]:
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")
    for value, nodes in page.evaluate("window.shifts"):
        if value > 0.001:
            yield at.finding("moves after it was loaded", nodes, "", f"{value:.4f}")


def weigh(at: Place, page: Page, answer: Response) -> Iterator[Finding]:
    """What a first visit sends: nothing is in the browser's cache."""
    html = len(gzip.compress(answer.body(), 6))
    parts = page.evaluate(
        "[...document.querySelectorAll('link[rel=stylesheet], link[rel=icon], script[src], "
        "img[src]')].map((one) => one.href || one.src)"
    )
    parts += page.evaluate(
        "[...document.querySelectorAll('use')].slice(0, 1).map((one) => new URL(one.getAttribute('href'), "
        "location).href.split('#')[0])"
    )
    sizes = {url.rsplit("/", 1)[-1]: size_of(page, url) for url in parts}
    if html > LARGEST_PAGE:
        yield at.finding("too much HTML", "", "", f"{html} bytes")
    if html + sum(sizes.values()) > LARGEST_VISIT:
        yield at.finding("too much at the first visit", "", "", f"page {html} bytes, {sizes}")


_sizes: dict[str, int] = {}


def size_of(page: Page, url: str) -> int:
    """Of a file that every page loads, on the wire."""
    if url not in _sizes:
        _sizes[url] = len(gzip.compress(page.request.get(url).body(), 6))
    return _sizes[url]


def look_at_errors(page: Page, path: str, width: int) -> Iterator[Finding]:
    """The forms of the page, sent empty and with very long answers. The server forgets what they did."""
    forms = page.locator(FORMS)
    count = forms.count()
    for number in range(count):
        for state, text in (("sent empty", ""), ("with long answers", LONG)):
            if page.url.split("#")[0] != page.url or strip(page.url) != strip(path) or state != "sent empty" or number:
                page.goto(path)
            if number >= forms.count():
                yield Place(path, width, "light", state).finding("form is gone", "", "", "after others were sent")
                continue
            with page.expect_navigation() as sent:
                page.evaluate(SEND, [FORMS, number, text])
            answer = sent.value.status if sent.value else 0
            if answer == 404:
                continue
            at = Place(path, width, "light", f"form {number + 1} {state}")
            if answer >= 500:
                yield at.finding("error of the server", "", "", str(answer))
                continue
            yield from checked(at, page)
            if width == WIDTHS[-1]:
                page.evaluate(AXE_SCRIPT)
                yield from read_by_axe(at, page)


SEND = """([forms, number, text]) => {
  const form = document.querySelectorAll(forms)[number];
  for (const one of form.elements)
    if (one.matches("input:not([type=hidden], [type=checkbox], [type=radio], [type=file], [type=number]), textarea")) { one.value = text; }
    else if (!text && one.matches("[type=checkbox], [type=radio]")) one.checked = false;
  HTMLFormElement.prototype.submit.call(form);
}"""
