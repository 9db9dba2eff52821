"""By which name and which numbers other computers reach the box and its shares: the same on every page."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

import msgspec
from django.conf import settings
from django.http import HttpRequest

from appliance.shares.addresses import AddressWay, share_addresses
from appliance.shares.settings import PROTOCOLS, ShareSetting
from appliance.system.box_info import BoxInfo
from web.inventory.fact_row import readable_facts
from web.inventory.models import BoxRow

# What a browser calls its computer, and what addresses call it in English.
# An iPad may call itself a Mac: both take the same address.
COMPUTERS = (
    (r"iPhone|iPad", "iPhone and iPad"),
    (r"Android", "Android"),
    (r"Windows", "Windows"),
    (r"Macintosh|Mac OS X", "Mac"),
    (r"Linux|X11", "Linux, on the desktop"),
)


class BoxAddress(msgspec.Struct, frozen=True):
    """The name that the box announces in its network (mDNS), and its IPv4 addresses, the first of them in the network
    of the computer that asks where the box has one there."""

    host: str
    numbers: tuple[str, ...] = ()

    def ways(self, setting: ShareSetting, protocol: str, path: str) -> tuple[AddressWay, ...]:
        """How each kind of computer reaches a folder over one protocol; ``path`` is where it is mounted."""
        number = self.numbers[0] if self.numbers else ""
        return share_addresses(setting, protocol, host=self.host, path=path, number=number)

    def all_ways(self, setting: ShareSetting, path: str) -> list[AddressWay]:
        """The same over every protocol. ``path`` empty: it is not known yet, and an export is called by it."""
        known = [protocol for protocol in PROTOCOLS if path or protocol != "nfs"]
        return [way for protocol in known for way in self.ways(setting, protocol, path)]

    @property
    def other_numbers(self) -> tuple[str, ...]:
        """Those that stand in no address."""
        return self.numbers[1:]


def box_host() -> str:
    """The name that the box announces in its network (mDNS)."""
    return f"{settings.BOX_NAME}.local"


def read_box_address(request: HttpRequest) -> BoxAddress:
    """How the computer that asks reaches the box; one query."""
    rows: list[BoxInfo] = readable_facts(BoxRow.objects.all()[:1])
    found = [address for box in rows for port in box.ports for address in port.addresses]
    return BoxAddress(box_host(), sort_numbers(found, request.META.get("HTTP_X_REAL_IP", "")))


def sort_numbers(addresses: Iterable[str], asked_from: str) -> tuple[str, ...]:
    """The IPv4 addresses of ports (``192.168.1.5/24``) without the length of the network,
    nearest to the asker first."""
    try:
        asker = ipaddress.ip_address(asked_from)
    except ValueError:
        asker = None
    found = [ipaddress.IPv4Interface(address) for address in addresses if ":" not in address]
    found.sort(key=lambda one: asker is None or asker not in one.network)
    return tuple(str(one.ip) for one in found)


def computer_of(user_agent: str) -> str:
    """The computer that a browser runs on, as the addresses name it; empty if it does not say."""
    return next((computer for pattern, computer in COMPUTERS if re.search(pattern, user_agent)), "")


def asker_first(ways: Iterable[AddressWay], user_agent: str) -> list[AddressWay]:
    """The ways with that of the computer that asks in front, which else is the first."""
    computer = computer_of(user_agent)
    return sorted(ways, key=lambda way: way.computer != computer)
