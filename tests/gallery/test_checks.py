"""The checks of a page find what they are for, and leave alone what is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.gallery.window import CHECKS

SAME = "sentence in two notices"


@pytest.fixture
def window(chromium: Browser) -> Iterator[Page]:
    found = chromium.new_page()
    yield found
    found.close()


def same_sentences(window: Page, html: str) -> list[str]:
    window.set_content(f"<!doctype html><title>notices</title><main>{html}</main>")
    return [one["text"] for one in window.evaluate(CHECKS, {}) if one["kind"] == SAME]


@pytest.mark.parametrize("other", ["attention", "toast", "note", "loss"])
def test_d32_sentence_in_two_notices_is_found(window, other):
    first = (
        '<div class="attention"><span><strong>Bay 3 is failing.</strong> The pool family has no '
        "redundancy.</span></div>"
    )
    second = f'<div class="{other}"><span>The  pool family\nhas no redundancy. Replace the disk.</span></div>'
    assert same_sentences(window, first + second) == ["The pool family has no redundancy"]


def test_notices_that_say_different_things_and_hidden_ones_are_left_alone(window):
    text = "The pool family has no redundancy."
    first = f'<div class="attention"><span>{text}</span> <a class="button">See what happened to it</a></div>'
    assert not same_sentences(window, first + f"<p>{text}</p>")
    assert not same_sentences(window, first + f'<div class="note" hidden>{text}</div>')
    second = '<div class="note"><span>It is slow.</span> <a class="button">See what happened to it</a></div>'
    assert not same_sentences(window, first + second + second)
