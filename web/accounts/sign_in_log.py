"""Sign-ins in the system's journal, where those of ssh are too.
A name that failed is not written: it may be a password."""

from __future__ import annotations

import socket

JOURNAL = "/run/systemd/journal/dev-log"
IDENTIFIER = "larder-sign-in"
AUTHPRIV = 10 << 3  # syslog(3)
NOTICE, WARNING = 5, 4


def note_success(name: str, address: str | None) -> None:
    write(NOTICE, f"{name} signed in at Larder's pages from {address or 'an unknown address'}")


def note_failure(address: str | None) -> None:
    write(WARNING, f"a sign-in at Larder's pages failed, from {address or 'an unknown address'}")


def write(severity: int, text: str) -> None:
    """Write a line, where there is a journal. Nobody is kept out because it does not answer."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.settimeout(0.5)
            line = " ".join(text.split())[:300]
            journal.sendto(f"<{AUTHPRIV | severity}>{IDENTIFIER}: {line}".encode(errors="replace"), JOURNAL)
    except OSError:
        pass
