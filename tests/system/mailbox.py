"""A mail server of the test, outside of the appliance: takes mail, refuses it, answers
"later", or says nothing at all."""

from __future__ import annotations

import base64
import email
import email.policy
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

HOST = "10.0.2.2"  # this machine, as QEMU's user network shows it to the appliance


class Mailbox(socketserver.ThreadingTCPServer):
    """``mode``: take, refuse (550), greylist (451), hang, nonsense, drop (closes after the mail, without an answer),
    curt (closes after its answer), login (535).

    With a certificate (a file of key and certificate) it offers STARTTLS, or speaks TLS from the first word on
    (``tls``), and to sign in after that.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, certificate: Path | None = None, *, tls: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.tls = tls
        self.trust: ssl.SSLContext | None = None
        if certificate:
            self.trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.trust.load_cert_chain(certificate)
        self.signed_in: list[str] = []
        self.mode = "take"
        self.mails: list[EmailMessage] = []
        self.dropped: list[EmailMessage] = []
        self.tries = 0
        self.closing = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def subjects(self) -> list[str]:
        return [subject_of(mail) for mail in self.mails]

    def about(self, words: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if words in subject_of(mail)]


def subject_of(mail: EmailMessage) -> str:
    """As a person reads it: where a long one was folded, reading it back can give two spaces for one."""
    return " ".join(str(mail["Subject"]).split())


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Key and certificate in one file, as a server wants it, and the certificate alone, to be trusted.

    Self-made, and still with all that a strict check wants of one that vouches for itself (OpenSSL's X509_STRICT, which
    Python switches on from 3.13).
    """
    key, public, both = folder / "mail.key", folder / "mail.crt", folder / "mail.pem"
    more = (
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=critical,digitalSignature,keyCertSign",
        f"subjectAltName=DNS:localhost,IP:{HOST}",
    )
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            key,
            "-out",
            public,
            "-days",
            "3650",
            "-config",
            "/dev/stdin",
            "-subj",
            "/CN=mail of a test",
            *(word for one in more for word in ("-addext", one)),
        ],
        check=True,
        capture_output=True,
        input=b"[req]\ndistinguished_name=name\n[name]\n",
    )
    both.write_text(key.read_text() + public.read_text())
    return both, public


def text_of(mail: EmailMessage) -> str:
    """What it says, as plain text."""
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


class Conversation(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as smtplib speaks."""

    server: Mailbox

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def secured(self) -> bool:
        """Go on encrypted; False where the other side does not trust the certificate, and hangs up."""
        box: Any = self.server
        try:
            self.connection = box.trust.wrap_socket(self.connection, server_side=True)
        except OSError:
            return False
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        return True

    def handle(self) -> None:
        box: Any = self.server
        box.tries += 1
        if box.mode == "hang":
            box.closing.wait()
            return
        if box.mode == "nonsense":
            self.wfile.write(b"\x00\xff nonsense\r\n" * 100)
            return
        if box.tls and not self.secured():
            return
        self.say("220 test")
        while line := self.rfile.readline():
            verb = line.decode(errors="replace").strip().upper()
            if verb.startswith("EHLO") and box.trust:
                self.say("250-test")
                self.say("250 AUTH PLAIN" if isinstance(self.connection, ssl.SSLSocket) else "250 STARTTLS")
            elif verb == "STARTTLS" and box.trust:
                self.say("220 go on")
                if not self.secured():
                    return
            elif verb.startswith("AUTH"):
                box.signed_in.append(base64.b64decode(line.split()[-1]).decode())
                self.say("535 5.7.8 wrong password" if box.mode == "login" else "235 2.7.0 welcome")
            elif verb.startswith("RCPT") and box.mode in {"refuse", "greylist"}:
                self.say("550 5.1.1 nobody of that name" if box.mode == "refuse" else "451 4.7.1 come back later")
            elif verb == "DATA":
                self.say("354 go on")
                text = b""
                while (part := self.rfile.readline()) not in {b".\r\n", b""}:
                    text += part
                if box.mode == "drop":
                    box.dropped.append(email.message_from_bytes(text, policy=email.policy.default))
                    return
                box.mails.append(email.message_from_bytes(text, policy=email.policy.default))
                self.say("250 taken")
                if box.mode == "curt":
                    return
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")


@contextmanager
def mailbox(certificate: Path | None = None, *, tls: bool = False) -> Iterator[Mailbox]:
    with Mailbox(certificate, tls=tls) as box:
        thread = threading.Thread(target=box.serve_forever, daemon=True)
        thread.start()
        yield box
        box.closing.set()
        box.shutdown()
