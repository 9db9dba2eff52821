"""What a setting of the box is that can be tried.

A value is text with one exact form, so that what comes back is what was there. Nobody chooses a value:
``propose`` makes the one that is tried from the one that is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from appliance.system import mtu

NOWHERE = Path()
PORT_ADDRESS = re.compile(r'ATTR\{address\}=="([0-9a-f:]{1,60})"')  # in a file of udev that is for one port
MARK = "# Written by Larder, because it helped in a benchmark. Before: "


def take_at_once(value: str) -> None:
    """Most settings work as soon as they are set."""


class BoxSetting(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` and ``meaning`` for people; ``warning``: what each switch does to others;
    ``protocols`` that it can make faster; ``form`` of its values.

    ``read`` the value (raises Refused where the box has none), ``propose`` another (raises Refused where there is
    none to try), ``show`` a value to people, ``argv`` that sets it until the next start, ``settle`` waits until it
    works (raises Failed or Refused where it does not), ``seconds`` until it goes back by itself, longer than a
    part of a run takes, and the ``lines`` of ``file`` that set it at each start (raises Refused); ``NOWHERE``
    where it is kept from another page.
    """

    name: str
    meaning: str
    warning: str = ""
    protocols: tuple[str, ...]
    form: re.Pattern[str]
    read: Callable[[], str]
    propose: Callable[[str], str]
    show: Callable[[str], str]
    argv: Callable[[str], tuple[str, ...]]
    settle: Callable[[str], None] = take_at_once
    seconds: int = 30 * 60
    file: Path = NOWHERE
    lines: Callable[[str], str] = str

    def body(self, value: str, former: str) -> str:
        """The whole file that keeps ``value``."""
        return f"{MARK}{former}\n{self.lines(value)}\n"

    def read_kept(self) -> tuple[str, str]:
        """What the value was before it was kept, and the address of the port that it is kept for;
        empty where there is none."""
        try:
            text = self.file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "", ""
        first = text.partition("\n")[0]
        former, address = first.removeprefix(MARK), PORT_ADDRESS.search(text)
        known = first.startswith(MARK) and self.form.fullmatch(former)
        return (former, address[1] if address else "") if known else ("", "")

    def read_former(self) -> str:
        """What the value was before it was kept, with the name that its port has now; empty where it is not kept."""
        former, address = self.read_kept()
        now = find_port_with(address) if address else ""
        return f"{now} {former.partition(' ')[2]}" if now else former

    def lost_port(self) -> str:
        """The port that it is kept for, by the name that it had, where no port has its address; else empty."""
        former, address = self.read_kept()
        return former.partition(" ")[0] if address and not find_port_with(address) else ""


def find_port_with(address: str) -> str:
    """The name of the network port (no bridge or bond) with this address; empty where there is none."""
    for path in sorted(mtu.PORTS.glob("*/address")):
        try:
            if (path.parent / "device").exists() and path.read_text().strip() == address:
                return path.parent.name
        except OSError:
            continue  # it went away meanwhile
    return ""
