"""A browser, and the recorded boxes served to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import CHROMIUM, QUIET
from tests.gallery.server import serving
from tests.gallery.window import Gallery

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Of the server of recorded boxes."""
    with serving(ROOT) as found:
        yield found


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def gallery(chromium: Browser, address: str) -> Iterator[Gallery]:
    found = Gallery(chromium, address)
    yield found
    found.close()
