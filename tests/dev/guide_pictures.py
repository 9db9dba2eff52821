"""Take the pictures of the guide from recorded boxes: ``python -m tests.dev.guide_pictures`` (needs Chromium).

Beside each picture the words that it shows are kept. A test compares them with the page of today, and so says when
a picture has become old.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from deploy.image.machine import wait_for
from tests.browser.conftest import CHROMIUM, QUIET
from tests.web.routes import BURN_IN, CLIENT_RUN, TANK

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "web/static/guide"
WORDS = ROOT / "tests/dev/guide"
PORT = 8321
WIDTH, HEIGHT = 960, 600
QUALITY = 60
MOST_BYTES = 45_000  # of a picture: a page and its picture stay under 120 kB


@dataclass(frozen=True)
class Shot:
    """The page that a picture shows, of which recorded box."""

    slug: str
    box: str
    url: str


SHOTS = (
    Shot("first-steps", "empty", "/"),
    Shot("pools", "healthy", "/pools/"),
    Shot("burn-in", "healthy", f"/disks/burn-ins/{BURN_IN}/"),
    Shot("rehearsal", "many", "/pools/6000/rehearsal/"),
    Shot("sharing", "healthy", "/shares/new/"),
    Shot("users", "healthy", "/users/"),
    Shot("snapshots", "healthy", "/snapshots/restore/"),
    Shot("backups", "healthy", "/backups/"),
    Shot("failing-disk", "degraded", "/"),
    Shot("notifications", "healthy", "/alerts/mail/"),
    Shot("moving", "empty", "/pools/import/"),
    Shot("space", "full", "/pools/"),
    Shot("growth", "full", f"/pools/{TANK}/growth/"),
    Shot("iscsi", "healthy", "/folders/3157562817/iscsi/"),
    Shot("client", "healthy", f"/benchmarks/client/{CLIENT_RUN}/"),
    Shot("mtu", "healthy", "/system/ports/eno1/mtu/"),
)


def lasting_words(text: str) -> list[str]:
    """The words of a page that do not change from day to day: no numbers, dates or units of them."""
    return re.findall(r"[A-Za-z’]{4,}", text)


def headings(page_source: str) -> list[str]:
    """What a picture is recognised by: headings, labels and buttons of the page, in order."""
    main = page_source.partition("<main")[2].partition("</main>")[0]
    found = re.findall(r"<(h1|h2|h3|label|legend|button|th)\b[^>]*>(.*?)</\1>", main, re.DOTALL)
    return [line for _tag, inner in found if (line := " ".join(lasting_words(re.sub(r"<[^>]+>", " ", inner))))]


@contextmanager
def served() -> Iterator[str]:
    """A recorded box, served for as long as this lasts; its address."""
    command = [sys.executable, "-m", "tests.dev", "--port", str(PORT)]
    server = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{PORT}"

    def answers() -> bool:
        with suppress(OSError):
            urllib.request.urlopen(f"{address}/login/", timeout=5).close()
            return True
        return False

    try:
        wait_for("the recorded box to answer", answers, timeout=120)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def take(page: Page, shot: Shot) -> None:
    """One picture, without the header and the navigation, and its words."""
    page.goto(f"/?box={shot.box}")
    page.goto(shot.url)
    page.wait_for_load_state("networkidle")
    top = page.locator("main").bounding_box()
    assert top is not None
    clip = {"x": top["x"], "y": top["y"], "width": WIDTH, "height": HEIGHT, "scale": 1}
    session = page.context.new_cdp_session(page)
    parts = {"format": "webp", "quality": QUALITY, "clip": clip, "captureBeyondViewport": True}
    image = base64.b64decode(session.send("Page.captureScreenshot", parts)["data"])
    if len(image) > MOST_BYTES:
        raise SystemExit(f"{shot.slug}: {len(image)} bytes are too many for a page of the guide")
    (IMAGES / f"{shot.slug}.webp").write_bytes(image)
    source = page.request.get(shot.url).text()
    (WORDS / f"{shot.slug}.txt").write_text("\n".join(headings(source)) + "\n")
    print(f"{shot.slug}: {len(image)} bytes", flush=True)


def main() -> None:
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        context = browser.new_context(base_url=address, viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page = context.new_page()
        page.goto("/login/")
        page.fill("input[name=login]", "admin")
        page.fill("input[name=password]", "admin")
        page.press("input[name=password]", "Enter")
        page.wait_for_load_state()
        for shot in SHOTS:
            take(page, shot)
        browser.close()


if __name__ == "__main__":
    main()
