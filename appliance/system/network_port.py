"""What a network port can do and how it is doing: its link, what both sides offer, and
frames that were lost or damaged.

The link is asked of the kernel as ethtool(8) asks (ETHTOOL_GLINKSETTINGS, include/uapi/linux/ethtool.h), which needs
neither root nor that program. Counters are those of /sys/class/net
(Documentation/ABI/testing/sysfs-class-net-statistics).
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from appliance.formatting import list_with_and, with_unit
from appliance.message import Message

SIOCETHTOOL, GLINKSETTINGS = 0x8946, 0x4C
HEADER = struct.Struct("=IIBBBBBBBbBBBB28x")  # struct ethtool_link_settings without its masks
MOST_WORDS = 32  # of a mask; the kernel has four
UNKNOWN_SPEED, HALF = 0xFFFFFFFF, 0
ETHERNET = "1"  # ARPHRD_ETHER
# Bits of ethtool_link_mode_bit_indices by the speed in Mbit/s that they stand for.
# Others are left out: too little is said of a port then, never too much.
MODES: dict[int, tuple[int, ...]] = {
    10: (0, 1),
    100: (2, 3, 67, 90, 91),
    1000: (4, 5, 17, 41, 68),
    2500: (15, 47),
    5000: (48,),
    10000: (12, 18, 19, 20, 42, 43, 44, 45, 46),
    20000: (21, 22),
    25000: (31, 32, 33),
    40000: (23, 24, 25, 26),
    50000: (34, 35, 40, 52, 53, 54, 55, 56),
    56000: (27, 28, 29, 30),
    100000: (36, 37, 38, 39, 57, 58, 59, 60, 61),
}
GIGABIT = 1000
# Windows are long enough for a file to be copied and short enough to tell of today.
WINDOW, SHORTEST_WINDOW, SECONDS_BETWEEN = 900.0, 300.0, 30.0  # seconds in which frames are counted
# Single damaged frames happen on a good cable, and a busy box drops one now and then: so many,
# and so large a share, do not.
MOST_DAMAGED, DAMAGED_SHARE = 20, 1 / 10_000
MOST_DROPPED, DROPPED_SHARE = 500, 1 / 200


class Link(msgspec.Struct, frozen=True):
    """Speeds in Mbit/s, 0 where unknown. ``supported``: the most that the port can do;
    ``offered``: that it is set to offer; ``partner``: that the other end of the cable offers."""

    speed: int = 0
    half_duplex: bool = False
    supported: int = 0
    offered: int = 0
    partner: int = 0

    @property
    def reachable(self) -> int:
        """The speed that the link should have: what both ends offer, and a gigabit where the other
        end tells less or nothing."""
        return min(self.offered or self.supported, max(self.partner, GIGABIT))

    @property
    def is_slow(self) -> bool:
        """Whether it runs below that. A port of 2.5 or 10 Gbit/s at a gigabit switch is not slow."""
        return 0 < self.speed < self.reachable


class Counters(msgspec.Struct, frozen=True):
    """Frames since the start: all that passed, those that were damaged, those that were thrown away."""

    passed: int
    damaged: int
    dropped: int


class PortStatus(msgspec.Struct, frozen=True):
    """A port as the rules of alerts see it, in words.
    ``unsure``: it was not looked at for long enough to tell of frames."""

    name: str
    slow: str = ""
    half_duplex: bool = False
    losses: str = ""
    unsure: bool = False


def parse_link(answer: bytes) -> Link | None:
    """The link of an answer to GLINKSETTINGS; None where it is none."""
    if len(answer) < HEADER.size:
        return None
    _cmd, speed, duplex, *_more, words, _transceiver, _role, _state, _matching = HEADER.unpack_from(answer)
    if not 0 < words <= MOST_WORDS or len(answer) < HEADER.size + 12 * words:
        return None
    masks = [answer[HEADER.size + at * 4 * words :][: 4 * words] for at in range(3)]
    supported, offered, partner = (fastest(int.from_bytes(mask, "little")) for mask in masks)
    known = 0 < speed < UNKNOWN_SPEED
    return Link(speed if known else 0, known and duplex == HALF, supported, offered, partner)


def fastest(mask: int) -> int:
    """The highest speed of a mask of link modes; 0 where it has none that is known."""
    return max((speed for speed, bits in MODES.items() if any(mask >> bit & 1 for bit in bits)), default=0)


def ask_ethtool(name: str, request: bytes) -> bytes:
    """The kernel's answer to a request about a port. Raises OSError; many virtual ports have none."""
    buffer = array.array("B", request)
    ifreq = struct.pack("16sP16x", name.encode()[:15], buffer.buffer_info()[0])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, ifreq)
    return buffer.tobytes()


def read_link(name: str, ask: Callable[[str, bytes], bytes] = ask_ethtool) -> Link | None:
    """The link of a port; None where its driver does not tell."""

    def request(words: int) -> bytes:
        header = HEADER.pack(GLINKSETTINGS, 0, 0, 0, 0, 0, 0, 0, 0, words, 0, 0, 0, 0)
        return header + bytes(12 * words)

    try:
        # The first answer says how many words a mask has, as a negative number.
        words = -HEADER.unpack_from(ask(name, request(0)))[9]
        return parse_link(ask(name, request(words))) if 0 < words <= MOST_WORDS else None
    except OSError:
        return None


def is_watched(place: Path) -> bool:
    """Whether a port of /sys/class/net is a wired one of the box itself and up: no bridge,
    tunnel or port of a container."""
    wireless = (place / "wireless").exists() or (place / "phy80211").exists()
    wired = (place / "device").exists() and not wireless and read_word(place / "type") == ETHERNET
    return wired and read_word(place / "operstate") == "up"


def read_word(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def read_count(path: Path) -> int:
    word = read_word(path)
    return int(word) if word.isascii() and word.isdecimal() else 0


def read_counters(place: Path) -> Counters:
    """The counters of a port. Frames for nobody here (rx_nohandler) are not lost: the kernel
    counts them as dropped too."""
    counted = {
        file: read_count(place / "statistics" / file)
        for file in (
            "rx_packets",
            "tx_packets",
            "rx_errors",
            "tx_errors",
            "rx_dropped",
            "tx_dropped",
            "rx_nohandler",
        )
    }
    return Counters(
        counted["rx_packets"] + counted["tx_packets"],
        counted["rx_errors"] + counted["tx_errors"],
        max(counted["rx_dropped"] - counted["rx_nohandler"], 0) + counted["tx_dropped"],
    )


class PortWatch:
    """Looks at the ports from time to time and remembers the counters of the last quarter of an hour."""

    def __init__(self, folder: Path = Path("/sys/class/net"), ask: Callable[[str, bytes], bytes] = ask_ethtool) -> None:
        self.folder, self.ask = folder, ask
        self.seen: dict[str, deque[tuple[float, Counters]]] = {}

    def look(self, now: float) -> tuple[PortStatus, ...]:
        """The ports that are watched, at a moment of the monotonic clock."""
        listed = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        places = {place.name: place for place in listed if is_watched(place)}
        self.seen = {name: seen for name, seen in self.seen.items() if name in places}
        return tuple(self.look_at(place, now) for place in places.values())

    def look_at(self, place: Path, now: float) -> PortStatus:
        link = read_link(place.name, self.ask)
        seen = self.seen.setdefault(place.name, deque())
        current = read_counters(place)
        if seen and current.passed < seen[-1][1].passed:
            seen.clear()  # the driver began anew
        if not seen or now - seen[-1][0] >= SECONDS_BETWEEN:
            seen.append((now, current))
        while len(seen) > 1 and now - seen[1][0] >= WINDOW:
            seen.popleft()
        since, before = seen[0]
        return PortStatus(
            place.name,
            describe_slow(link) if link and link.is_slow else "",
            bool(link and link.half_duplex),
            describe_losses(before, current, now - since),
            unsure=now - since < SHORTEST_WINDOW,
        )


def describe_speed(speed: int) -> str:
    """Mbit/s in words: ``1 Gbit/s``."""
    return with_unit(f"{speed / 1000:g}", "Gbit/s") if speed >= 1000 else f"{speed} Mbit/s"


def describe_slow(link: Link) -> str:
    """Which of the ends, or what between them, keeps a link slow."""
    runs = Message(
        "It runs at {describe_speed} and can do {describe_speed_2}.",
        describe_speed=describe_speed(link.speed),
        describe_speed_2=describe_speed(link.supported or link.offered),
    )
    if 0 < link.offered <= link.speed:
        return Message("{runs} It is set to offer no more.", runs=runs)
    if link.partner > link.speed:
        other = Message("The other end offers {describe_speed}", describe_speed=describe_speed(link.partner))
        return Message("{runs} {other}, so the cable or a plug is the likely cause.", runs=runs, other=other)
    if link.partner:
        return Message(
            "{runs} The other end offers no more than {describe_speed}.",
            runs=runs,
            describe_speed=describe_speed(link.partner),
        )
    return Message("{runs} The other end does not say what it can do.", runs=runs)


def describe_losses(before: Counters, now: Counters, seconds: float) -> str:
    """What was lost between two looks, where that is too much; otherwise empty."""
    passed = now.passed - before.passed
    damaged, dropped = now.damaged - before.damaged, now.dropped - before.dropped
    told = []
    if damaged >= MOST_DAMAGED and damaged > passed * DAMAGED_SHARE:
        told.append(Message("{damaged} frames were damaged", damaged=damaged))
    if dropped >= MOST_DROPPED and dropped > passed * DROPPED_SHARE:
        told.append(Message("{dropped} frames were dropped", dropped=dropped))
    if not told:
        return ""
    return Message(
        "In {round} minutes {told}; {passed} passed.",
        round=max(round(seconds / 60), 1),
        told=list_with_and(told),
        passed=passed,
    )
