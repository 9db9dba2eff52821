"""Which pages the gallery shows, and what of them is known to be other than the checks ask
for, each with its reason."""

from __future__ import annotations

from tests.web.routes import ROUTES

# Addresses that answer with something else than a page.
WITHOUT_A_PAGE = {
    "ready": "a line of text for whoever waits for the box",
    "account_signup": "leads to the page for signing in",
    "new_key": "a file",
    "snapshot_content": "a file",
    "export_benchmark": "a file",
    "download_bundle": "a file",
    "client_script": "a file",
    "download_peer": "a file",
    "import_report": "a file",
}
SHOWN = [route.name for route in ROUTES if "GET" in route.methods and route.name not in WITHOUT_A_PAGE]
SHOWN.append("components")  # of recorded boxes only
# Pages of which no recorded box has anything to show yet.
WITHOUT_A_SAMPLE = {
    "support_file": "a support bundle is only in the memory of the web process that made it",
    "share_again": "no folder of the recorded boxes was restored from the other box",
}
SIGNED_OUT = {"setup", "account_login"}

# What a check leaves alone, with the reason: {kind of finding: {selector of an element or one around it: why}}.
EXEMPT: dict[str, dict[str, str]] = {
    "squeezed column": {
        ".graph-axis": "the last label of a chart has the width of one of its years, and may take three short lines",
    },
    "clipped text": {
        ".clip": "the first three lines of a text that the page of the job shows in full, one click away",
    },
}
# Rules of axe that are not asked for, with the reason.
WITHOUT_RULES: dict[str, str] = {}
