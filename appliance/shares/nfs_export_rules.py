"""Validate the clients of an NFS export: addresses, networks and host names, each in one spelling for exports(5).

Wildcards and netgroups are left out: both lean on what a name server says of an address, which anybody in
the network may answer. ``*`` and networks that are larger than any household's are refused: two halves of
the world are the world too.
"""

from __future__ import annotations

import ipaddress
import re

from appliance import names
from appliance.errors import Reason, Refused

LONGEST_NAME = 253  # RFC 1123
LARGEST = {4: 8, 6: 16}  # the shortest prefix; what no router passes on (unique local, link local) may be larger
LOCAL = (ipaddress.IPv6Network("fc00::/7"), ipaddress.IPv6Network("fe80::/10"))
MOST = 64  # of one folder: a household has fewer, and a hostile list has an end


def check_client(text: str, *, field: str = "hosts") -> str:
    """One client as exports(5) is to read it. Raises Refused."""
    names.refuse_invisible_characters(text, field)
    if not text:
        raise Refused(
            Reason("nfs-client-empty", "Name a network such as 192.168.1.0/24, an address, or a computer.", field=field)
        )
    if text == "*":
        raise Refused(
            Reason(
                "nfs-client-everybody",
                "A star means everybody who can reach this box. Name your network, for example 192.168.1.0/24.",
                field=field,
            )
        )
    if re.fullmatch(r"[0-9a-fA-F:.]+(/[0-9]{1,3})?", text) and (":" in text or re.fullmatch(r"[0-9./]+", text)):
        return check_network(text, field)
    labels = text.lower().split(".")
    if (
        len(text) > LONGEST_NAME
        or not all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", label) for label in labels)
        or labels[-1].isdigit()
    ):
        raise Refused(
            Reason(
                "nfs-client-malformed",
                "{text} is not an address, a network or the name of a computer. Examples: 192.168.1.0/24, "
                "192.168.1.20, imac.local.",
                field=field,
                text=text[:60],
            )
        )
    return text.lower()


def check_network(text: str, field: str) -> str:
    """An address or a network; a network has no bits beyond its mask."""
    try:
        found = ipaddress.ip_network(text, strict=False)
        exact = ipaddress.ip_interface(text)
    except ValueError:
        raise Refused(
            Reason(
                "nfs-network-malformed",
                "{text} is not an address or a network. Write it like 192.168.1.0/24.",
                field=field,
                text=text[:60],
            )
        ) from None
    if found.prefixlen == 0:
        raise Refused(
            Reason(
                "nfs-network-whole-world",
                "{network} is the whole world. Name your own network, for example 192.168.1.0/24.",
                field=field,
                network=text,
            )
        )
    local = isinstance(found, ipaddress.IPv6Network) and any(found.subnet_of(one) for one in LOCAL)
    if found.prefixlen < LARGEST[found.version] and not local:
        raise Refused(
            Reason(
                "nfs-network-too-large",
                "{network} is a large part of the world. Name your own network, for example 192.168.1.0/24. "
                "/{prefix} is the largest.",
                field=field,
                network=text,
                prefix=LARGEST[found.version],
            )
        )
    if found.num_addresses > 1 and exact.ip != found.network_address:
        raise Refused(
            Reason(
                "nfs-address-in-network",
                "{text} is an address inside a network. Did you mean {network} or only {address}?",
                field=field,
                text=text,
                network=found,
                address=exact.ip,
            )
        )
    if found.is_multicast or found.is_unspecified:
        raise Refused(
            Reason("nfs-address-of-nobody", "No computer can have the address {address}.", field=field, address=text)
        )
    return str(found.network_address) if found.num_addresses == 1 else str(found)


def check_clients(texts: tuple[str, ...], *, field: str = "hosts") -> tuple[str, ...]:
    """All of them, each once, in their order. Raises Refused; at least one and at most ``MOST``."""
    found = tuple(dict.fromkeys(check_client(text, field=field) for text in texts))
    if not found:
        raise Refused(
            Reason("nfs-clients-not-chosen", "Choose first which networks and computers may mount it.", field=field)
        )
    if len(found) > MOST:
        raise Refused(
            Reason(
                "nfs-clients-too-many",
                "Name at most {count} networks and computers. A network can stand for many computers.",
                field=field,
                count=MOST,
            )
        )
    return found


def is_public(text: str) -> bool:
    """Whether it reaches beyond a home's own networks; a computer's name may be anywhere and is not counted."""
    try:
        return ipaddress.ip_network(text).is_global
    except ValueError:
        return False
