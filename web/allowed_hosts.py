"""Under which names and addresses this box may be called: its own, and no others.

A browser that was lured to a foreign name pointing here (DNS rebinding) sends that name as Host and is turned away.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path

ALWAYS = ("localhost", "127.0.0.1", "[::1]")


class OwnNames(list[str]):
    """A value for ALLOWED_HOSTS that follows the box: its host name and the addresses its worker last saw.

    ``addresses`` is a file with one address a line; Django iterates over this list at each request.
    """

    def __init__(self, addresses: Path) -> None:
        super().__init__(ALWAYS)
        self.addresses = addresses
        self.seen = (0.0, tuple[str, ...]())

    def __iter__(self) -> Iterator[str]:
        name = socket.gethostname().split(".", 1)[0].lower()
        yield from (*ALWAYS, name, f"{name}.local", f"{name}.lan", f"{name}.home.arpa", *self.current())

    def current(self) -> tuple[str, ...]:
        """The box's addresses; the file is read again only when it has changed."""
        try:
            changed = self.addresses.stat().st_mtime
            if changed != self.seen[0]:
                self.seen = (changed, tuple(word for word in self.addresses.read_text().split() if is_address(word)))
        except OSError:
            return ()
        return self.seen[1]


def is_address(word: str) -> bool:
    """Whether it is an address as Host writes it, so that no line of the file can be a pattern for names."""
    try:
        ipaddress.ip_address(word.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
