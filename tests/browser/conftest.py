"""A real browser against a real appliance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# An emulated appliance answers its first requests slowly; a condition is waited for, this is only the end of patience.
PATIENCE = 120_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, appliance) -> Iterator[Page]:
    """A new window of a new visitor, at the appliance's address. Errors of scripts fail the test."""
    context = browser.new_context(base_url=appliance.address, ignore_https_errors=True)
    context.set_default_timeout(PATIENCE)
    context.set_default_navigation_timeout(PATIENCE)
    window = context.new_page()
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    window.on(
        "console", lambda message: errors.append(message.text) if "Content Security Policy" in message.text else None
    )
    yield window
    context.close()
    assert not errors, errors
