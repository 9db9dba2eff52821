"""A browser, and the recorded boxes served to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

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
def gallery(address: str) -> Iterator[Gallery]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        found = Gallery(chromium, address)
        yield found
        found.close()
        chromium.close()
