"""Sign-ins are written into the system's journal: who and from where, and never the name of one that failed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.conftest import ADDRESS, PASSWORD
from web.accounts import sign_in_log


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as taken:
        taken.bind(str(tmp_path / "dev-log"))
        taken.settimeout(5)
        monkeypatch.setattr(sign_in_log, "JOURNAL", str(tmp_path / "dev-log"))
        yield taken


def test_sign_in_is_written_with_name_and_address(anonymous, admin, journal):
    anonymous.post("/login/", {"login": "admin", "password": PASSWORD}, **ADDRESS)
    assert journal.recv(1000) == b"<85>larder-sign-in: admin signed in at Larder's pages from 192.168.1.50"


def test_failure_is_written_without_the_name_that_was_typed(anonymous, admin, journal):
    anonymous.post("/login/", {"login": "canary-password", "password": "x"}, **ADDRESS)
    assert journal.recv(1000) == b"<84>larder-sign-in: a sign-in at Larder's pages failed, from 192.168.1.50"


def test_nobody_is_kept_out_where_there_is_no_journal(anonymous, admin, monkeypatch):
    monkeypatch.setattr(sign_in_log, "JOURNAL", "/nonexistent/dev-log")
    assert anonymous.post("/login/", {"login": "admin", "password": PASSWORD}, **ADDRESS).status_code == 302
