"""``python -m tests.gallery``: take pictures of the pages and say which differ from the approved ones.

``--with main`` compares with that commit instead, ``--approve`` approves what was taken last, and names of pages (those
of the URL configuration) limit it to these.
"""

from __future__ import annotations

import argparse
import sys

from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, QUIET
from tests.gallery import pictures


def main() -> None:
    reader = argparse.ArgumentParser(prog="python -m tests.gallery", description=__doc__)
    reader.add_argument("--approve", action="store_true")
    reader.add_argument("--with", dest="commit", default="")
    reader.add_argument("names", nargs="*")
    options = reader.parse_args()
    if options.approve:
        pictures.approve()
        return
    names = pictures.chosen(options.names)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        before = pictures.take_of_commit(browser, options.commit, names) if options.commit else pictures.APPROVED
        pictures.take(browser, pictures.NOW, names)
        if not before.exists():
            sys.exit(f"{pictures.NOW} has the pictures; none are approved. Approve them with --approve.")
        found = pictures.compare(browser, before, pictures.NOW)
        browser.close()
    for name, what in found.items():
        print(f"{name}: {what}")
    if found:
        sys.exit(f"See {pictures.write_page(found, before, pictures.NOW)}")


if __name__ == "__main__":
    main()
