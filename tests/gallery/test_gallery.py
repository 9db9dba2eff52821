"""Every page of every recorded box, looked at in Chromium: widths, themes, opened parts, refused forms.

A run of all is soak. Every run looks at a tenth of the pages, each at one width. A finding says page, width, theme,
state, what is wrong and where; ``pages.py`` lists what is known to be right all the same.
"""

from __future__ import annotations

import json
import urllib.request
import zlib

import pytest

from tests.dev.place import BOXES
from tests.gallery.pages import SHOWN, SIGNED_OUT, WITHOUT_A_SAMPLE
from tests.gallery.window import WIDTHS, collapse

CASES = [(box, name) for box in BOXES for name in SHOWN if (box == "new") == (name == "setup")]
CASES = [case for case in CASES if case[1] not in {"components", "account_login"} or case[0] == "healthy"]


def number_of(case: tuple[str, str]) -> int:
    """The same at every run, and as good as chance."""
    return zlib.crc32("/".join(case).encode())


TENTH = [case for case in CASES if number_of(case) % 10 == 0]


@pytest.mark.parametrize(("box", "name"), TENTH, ids=["-".join(case) for case in TENTH])
def test_a_tenth_of_the_pages_is_sound_at_one_width(gallery, box, name):
    gallery.open_box(box)
    width = WIDTHS[number_of((box, name)) // 10 % len(WIDTHS)]
    found = collapse(gallery.look_at(name, signed_in=name not in SIGNED_OUT, widths=(width,), most=1))
    assert not found, "\n".join(found)


@pytest.mark.soak
@pytest.mark.parametrize(("box", "name"), CASES, ids=["-".join(case) for case in CASES])
def test_every_page_is_sound_at_every_width_in_both_themes(gallery, box, name):
    gallery.open_box(box)
    found = collapse(gallery.look_at(name, signed_in=name not in SIGNED_OUT))
    assert not found, "\n".join(found)


def test_every_page_of_the_url_configuration_has_something_to_show(address):
    """A new page needs parameters in samples.py, or a reason in pages.py; a reason goes once
    there is something to show."""
    missing = set(SHOWN) - SIGNED_OUT
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    for box in (box for box in BOXES if box != "new"):
        with browser.open(f"{address}/gallery/{box}/") as answer:
            samples = json.load(answer)
        missing = {name for name in missing if not any(is_shown(browser, address + path) for path in samples[name])}
    assert missing == set(WITHOUT_A_SAMPLE)


def is_shown(browser: urllib.request.OpenerDirector, url: str) -> bool:
    """Whether it is a page of its own; also one that says why something cannot be done."""
    try:
        with browser.open(url) as answer:
            return bool(answer.url == url)
    except urllib.error.HTTPError as error:
        return error.code in {400, 409}
