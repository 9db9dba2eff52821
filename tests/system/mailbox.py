"""A mail server of the test, outside of the appliance: takes mail, refuses it, answers "later", or says nothing at all."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

HOST = "10.0.2.2"  # this machine, as QEMU's user network shows it to the appliance


class Mailbox(socketserver.ThreadingTCPServer):
    """``mode``: take, refuse (550), greylist (451), hang."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.mode = "take"
        self.mails: list[EmailMessage] = []
        self.tries = 0
        self.closing = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def subjects(self) -> list[str]:
        return [str(mail["Subject"]) for mail in self.mails]

    def about(self, words: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if words in str(mail["Subject"])]


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

    def handle(self) -> None:
        box: Any = self.server
        box.tries += 1
        if box.mode == "hang":
            box.closing.wait()
            return
        self.say("220 test")
        while line := self.rfile.readline():
            verb = line.decode(errors="replace").strip().upper()
            if verb.startswith("RCPT") and box.mode in {"refuse", "greylist"}:
                self.say("550 5.1.1 nobody of that name" if box.mode == "refuse" else "451 4.7.1 come back later")
            elif verb == "DATA":
                self.say("354 go on")
                text = b""
                while (part := self.rfile.readline()) not in {b".\r\n", b""}:
                    text += part
                box.mails.append(email.message_from_bytes(text, policy=email.policy.default))
                self.say("250 taken")
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    with Mailbox() as box:
        thread = threading.Thread(target=box.serve_forever, daemon=True)
        thread.start()
        yield box
        box.closing.set()
        box.shutdown()
