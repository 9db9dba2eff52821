"""No page of a box with many things sends more than 60 kB of HTML, or 120 kB in all at a first visit, compressed.

The gallery weighs what a browser really loads (tests/gallery/window.py), but in a run of all its pages only. The files
that a page loads are found here in its HTML.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders

from tests.gallery import samples
from tests.gallery.pages import SIGNED_OUT
from tests.web.reading import Page

BAR = "dev.css"  # of the bar above recorded boxes, which is no part of the product
LARGEST_PAGE, LARGEST_VISIT = 60_000, 120_000  # bytes


def size_of(content: bytes) -> int:
    """On the wire, as deploy/nginx/larder.conf compresses it."""
    return len(gzip.compress(content, 6))


@cache
def size_of_file(name: str) -> int:
    found = finders.find(name)
    assert found, name
    return size_of(Path(found).read_bytes())


def files_of(page: Page) -> set[str]:
    """The styles, scripts and pictures that a page loads."""
    wanted = {"link": "href", "script": "src", "img": "src", "use": "href"}
    addresses = {found.get(wanted[tag], "") for tag, found in page.elements if tag in wanted}
    names = {address.split("#")[0].removeprefix("/static/") for address in addresses if address.startswith("/static/")}
    return names - {BAR}


def too_heavy(response: Any) -> str:
    """Why a page is too heavy; empty where it is not."""
    html = size_of(response.content)
    files = {name: size_of_file(name) for name in files_of(Page(response))}
    if html > LARGEST_PAGE:
        return f"{html} bytes of HTML"
    return f"{html} bytes of HTML with {files}" if html + sum(files.values()) > LARGEST_VISIT else ""


def test_no_page_of_a_box_with_many_things_is_too_heavy(opened):
    web = opened("many")
    pages = {path for name, every in samples.find_samples().items() if name not in SIGNED_OUT for path in every}
    answers = {path: answer for path in sorted(pages) if (answer := web.get(path)).status_code == 200}
    assert len(answers) > 200
    assert {path: why for path, answer in answers.items() if (why := too_heavy(answer))} == {}


def test_page_with_too_much_is_found(web, calm):
    answer = web.get("/")
    assert len(files_of(Page(answer))) > 6
    assert too_heavy(answer) == ""
    answer.content = b"".join(b"<p>%d</p>" % (number * 7919) for number in range(40_000))
    assert "bytes of HTML" in too_heavy(answer)
