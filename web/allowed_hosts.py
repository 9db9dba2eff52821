"""Under which names and addresses this box may be called: its own, and no others.

A browser that was lured to a foreign name pointing here (DNS rebinding) sends that name as Host and is turned away.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path

from appliance.system.host_name import read_host_name

ALWAYS = ("localhost", "127.0.0.1", "[::1]")


class BoxName:
    """A value for a setting that follows the box: as text, its host name at that moment."""

    def __str__(self) -> str:
        return read_host_name()


class OwnNames(list[str]):
    """A value for ALLOWED_HOSTS that follows the box: its host name and the addresses its worker last saw.

    ``addresses`` is a file with one address a line; Django iterates over this list at each request.
    """

    def __init__(self, addresses: Path) -> None:
        super().__init__(ALWAYS)
        self.addresses = addresses
        self.seen = (0.0, tuple[str, ...]())

    def __iter__(self) -> Iterator[str]:
        yield from ALWAYS
        # The kernel tells the web service the name at its start: after a change, open pages go
        # on under that for a while.
        for name in {one.split(".", 1)[0].lower() for one in (read_host_name(), socket.gethostname())}:
            yield from (name, f"{name}.local", f"{name}.lan", f"{name}.home.arpa")
        yield from self.current()

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
