"""Parts of pages that are opened or come in lists: no word stands one letter a line, each
mark stands beside its sentence.

Rendered from the templates and the style sheet alone, without an appliance.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace as Some

import pytest
from django.template import engines
from django.template.loader import render_to_string
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[3]
STYLE = (ROOT / "web/static/larder.css").read_text()
WIDTHS = (320, 768, 1280)
TB = 10**12
HEAD = (
    "Layout",
    "Disks",
    "For files",
    "Survives",
    "Data lost if 2 disks fail",
    "if 3 fail",
    "Small reads, writes",
    "Large reads, writes",
)

# Elements with text whose lines hold less than four letters on average, though there are many of them.
SHREDDED = """() => [...document.querySelectorAll(":is(dl, .checks) :is(dt, dd, p, strong, span)")].filter(one => {
    const text = one.textContent.trim();
    if (text.length < 12 || !one.getClientRects().length || one.closest(".visually-hidden")) return false;
    const lines = one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight || 20);
    return one.children.length === 0 && text.length / lines < 4;
}).map(one => one.textContent.trim().slice(0, 40))"""
# Marks that do not stand in the first line of their sentence.
APART = """() => [...document.querySelectorAll(".checks > li")].filter(one => {
    const mark = one.querySelector(".icon").getBoundingClientRect(), said = one.querySelector("strong").getClientRects()[0];
    return mark.bottom <= said.top || mark.left >= said.left;
}).length"""


def offer(title: str, reason: str) -> Some:
    proposal = Some(
        title=title,
        reason=reason,
        choice=Some(value=title),
        usable=3 * TB,
        parity_cost=TB,
        waste=10**11,
        large_files=2 * TB,
        growth=[
            Some(
                how="Replace all disks by larger ones, one after the other",
                gain=4 * TB,
                note="It takes about a day for each disk.",
            ),
            Some(
                how="Add one disk to the group",
                gain=TB,
                note="What is there already keeps its old share of protection.",
            ),
        ],
        percent=66,
        rest=0,
        random_read=1,
        random_write=1,
        sequential_read=3,
        sequential_write=3,
    )
    picture = Some(
        width=120,
        height=60,
        disk=20,
        words="three disks",
        parts=[Some(use="data", x=number * 30, y=0, height=60) for number in range(4)],
    )
    return Some(
        proposal=proposal,
        picture=picture,
        explained="one disk's worth of space protects the others",
        known="",
        warnings=["These disks are of different size: 1 TB of the largest is not used."],
        idle=TB,
        survives="1 disk",
        second="50 %",
        third="always",
    )


def table() -> str:
    rows = "".join(
        render_to_string("pools/offer.html", {"offer": one, "proposal": one.proposal, "layout": ""})
        for one in (offer("Mirror of 2", "Best of both: it survives a disk and reads fast."), offer("raidz1 of 4", ""))
    )
    head = "".join(f'<th scope="col">{word}</th>' for word in HEAD)
    return (
        '<div class="page"><fieldset class="proposals"><table '
        f'class="table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></fieldset></div>'
    )


def checks() -> str:
    text = (ROOT / "templates/shares/troubleshoot.html").read_text()
    part = text[text.index('<ul class="checks">') : text.index("</ul>", text.index('<ul class="checks">')) + 5]
    found = [
        Some(
            state=state,
            title=title,
            meaning="A name is taken by another computer in the network, so this one is not found."
            if state == "failed"
            else "",
        )
        for state, title in (
            ("healthy", "The service runs."),
            ("failed", "The folder is shared under this name, and the network knows another box by it."),
        )
    ]
    rendered = engines["django"].from_string(part).render({"checks": [(one, None) for one in found]})
    return f'<div class="page narrow">{rendered}</div>'


@pytest.fixture(params=["light", "dark"])
def window(request, browser: Browser):
    context = browser.new_context(color_scheme=request.param)
    yield context.new_page()
    context.close()


def show(window: Page, body: str, width: int, name: str) -> None:
    window.set_viewport_size({"width": width, "height": 900})
    window.set_content(
        '<!doctype html><html lang="en"><meta name="color-scheme" content="light '
        f'dark"><style>{STYLE}</style><body>{body}'
    )
    if folder := os.environ.get("LARDER_PICTURES"):
        scheme = "dark" if window.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
        window.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("width", WIDTHS)
def test_cost_and_growth_of_a_layout_is_readable_when_opened(window, width):
    show(window, table().replace("<details", "<details open"), width, "layouts")
    assert window.evaluate(SHREDDED) == []
    assert window.evaluate("document.documentElement.scrollHeight") < 4000
    assert window.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_marks_of_checks_stand_beside_their_sentences(window, width):
    show(window, checks(), width, "checks")
    assert window.locator(".checks > li").count() == 2
    assert window.evaluate(APART) == 0
    assert window.evaluate(SHREDDED) == []
