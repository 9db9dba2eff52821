"""With every message 40 % longer, as another language may be, no page breaks on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.gallery.pages import SIGNED_OUT
from tests.gallery.server import serving
from tests.gallery.test_gallery import CASES, number_of
from tests.gallery.window import HEIGHT, OPEN_ALL, Finding, Gallery, Place, checked, collapse, strip
from tests.messages.pseudo import longer

WIDTH = 320
# Words become longer than words are; where such a word breaks, nothing is wrong. And they are the same in all notices.
NOT_ASKED = {"broken word", "sentence in two notices"}
LONGER = [case for case in CASES if case[0] in {"healthy", "degraded"} and case[1] not in SIGNED_OUT]
SOME = [case for case in LONGER if number_of(case) % 20 == 7]


@pytest.fixture(scope="module")
def gallery(chromium: Browser) -> Iterator[Gallery]:
    """A window that asks for Dutch, in whose place the longer messages are."""
    with serving(Path(__file__).parents[2], "longer") as address:
        found = Gallery(chromium, address, "nl-NL")
        yield found
        found.close()


def look(page: Page, path: str) -> Iterator[Finding]:
    """What is wrong as it loads, and with all opened; nothing where the box has no such page."""
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    answer = page.goto(path)
    if answer is None or answer.status == 404 or strip(answer.url) != strip(path):
        return
    assert "lengthened" in page.content(), path
    yield from checked(Place(path, WIDTH, "light", "as loaded"), page)
    page.evaluate(OPEN_ALL)
    yield from checked(Place(path, WIDTH, "light", "all opened"), page)


def findings(gallery: Gallery, box: str, name: str) -> list[str]:
    gallery.open_box(box)
    assert gallery.context
    page = gallery.context.new_page()
    try:
        found = [one for path in gallery.samples[name][:1] for one in look(page, path)]
    finally:
        page.close()
    return collapse(one for one in found if one.kind not in NOT_ASKED)


@pytest.mark.parametrize(("box", "name"), SOME, ids=["-".join(case) for case in SOME])
def test_some_pages_have_room_for_longer_words(gallery, box, name):
    found = findings(gallery, box, name)
    assert not found, "\n".join(found)


@pytest.mark.soak
@pytest.mark.parametrize(("box", "name"), LONGER, ids=["-".join(case) for case in LONGER])
def test_every_page_has_room_for_longer_words(gallery, box, name):
    found = findings(gallery, box, name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("message", ["OK", "Save", "Bay {name} is empty.", "%(a)s of %(b)s", "a, b and c", "And then "])
def test_message_is_40_percent_longer_with_what_it_begins_and_ends_with(message):
    made = longer(message)
    assert made.startswith(message.rstrip())
    assert made.endswith(message[len(message.rstrip()) :])
    assert 1.3 * len(message) <= len(made) <= 1.4 * len(message) + 2
