"""The system log shows what the journal holds: by area and severity, as text whatever it is, a page at a time."""

from __future__ import annotations

import re
from html import escape, unescape
from urllib.parse import urlencode

from deploy.image.machine import wait_for
from tests.visitor import Answer, Visitor

HOSTILE = "<script>alert(1)</script>\x1b[2J\x07 & 'quoted' \u202eback"


def log_address(**filters: str) -> str:
    return f"/system/log/?{urlencode({'severity': 'all', **filters})}"


def older_address(page: Answer) -> str:
    found = re.search(r'href="(\?[^"]*after=[^"]*)"', page.text)
    assert found, page.words
    return f"/system/log/{unescape(found[1])}"


def write(appliance, text: str, *, tag: str, priority: str) -> None:
    """A line in the journal, as a program with that name writes it."""
    appliance.run("logger", "--tag", tag, "--priority", priority, "--", text)


def written(appliance, text: str) -> bool:
    return text in appliance.run("journalctl", "--no-pager", "--output=cat", "--lines=200")


def test_a_line_is_found_by_its_area_and_severity_and_by_no_other(appliance, visitor):
    write(appliance, "canary-disk on ata3", tag="smartd", priority="daemon.err")
    write(appliance, "canary-login refused", tag="sshd", priority="authpriv.warning")
    wait_for("both to be written", lambda: written(appliance, "canary-disk") and written(appliance, "canary-login"))
    storage = visitor.get(log_address(area="storage", severity="error", period="hour", text="canary"))
    assert "canary-disk on ata3" in storage.words
    assert "canary-login" not in storage.words
    access = visitor.get(log_address(area="access", severity="warning", period="start", text="canary"))
    assert "canary-login refused" in access.words
    assert "canary-disk" not in access.words
    none = visitor.get(log_address(area="access", severity="error", period="day", text="canary"))
    assert "Nothing in this period matches." in none.words
    everything = visitor.get(log_address(text="CANARY"))
    assert everything.words.index("canary-login") < everything.words.index("canary-disk"), "newest first"


def test_signing_in_and_a_line_of_larders_own_are_there(appliance, visitor):
    Visitor(appliance).sign_in()
    visitor.wait_until(log_address(area="access", period="hour"), "signed in at Larder's pages from")
    visitor.wait_until(log_address(area="larder", period="start", text="larder-web"), "larder-web.service")


def test_hostile_text_is_only_text_and_secrets_are_hidden(appliance, visitor):
    write(appliance, f"canary-hostile {HOSTILE}", tag="nmbd", priority="user.notice")
    write(appliance, "canary-secret password=hunter2-hunter2", tag="nmbd", priority="user.notice")
    wait_for("both to be written", lambda: written(appliance, "canary-secret"))
    page = visitor.get(log_address(period="hour", text="canary-"))
    assert escape("<script>alert(1)</script>", quote=False) in page.text
    assert "<script>alert(1)" not in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text
    assert "canary-secret password=(hidden)" in page.words
    assert "hunter2" not in page.text


def test_older_lines_are_a_page_further_without_a_gap(appliance, visitor):
    appliance.shell("for number in $(seq 150); do echo canary-page-$number-; done | logger --tag canary")
    wait_for("all to be written", lambda: written(appliance, "canary-page-150-"))
    first = visitor.get(log_address(period="hour", text="canary-page"))
    older = visitor.get(older_address(first))
    seen = [number for number in range(1, 151) if f"canary-page-{number}-" in first.words]
    rest = [number for number in range(1, 151) if f"canary-page-{number}-" in older.words]
    assert (seen, rest) == (list(range(51, 151)), list(range(1, 51)))


def test_a_start_that_the_journal_does_not_have_is_said(appliance, visitor):
    page = visitor.get(log_address(period="former-start"))
    assert page.status == 200
    boots = appliance.run("journalctl", "--list-boots", "--no-pager").strip().splitlines()
    known = any(line.split()[0] == "-1" for line in boots)
    assert ("No log of that start" in page.words) != known
