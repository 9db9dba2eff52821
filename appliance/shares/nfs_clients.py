"""Who may mount a folder over NFS: addresses, networks and host names, each in one spelling that exports(5) takes.

Wildcards and netgroups are left out: both lean on what a name server says of an address, which anybody in the network
may answer. ``*`` and networks that are larger than any household's are refused: two halves of the world are the world too.
"""

from __future__ import annotations

import ipaddress
import re

from appliance import names

LONGEST_NAME = 253  # RFC 1123
LARGEST = {4: 8, 6: 16}  # the shortest prefix; what no router passes on (unique local, link local) may be larger
LOCAL = (ipaddress.IPv6Network("fc00::/7"), ipaddress.IPv6Network("fe80::/10"))
MOST = 64  # of one folder: a household has fewer, and a hostile list has an end


def client(text: str, *, field: str = "hosts") -> str:
    """One client as exports(5) is to read it. Raises Refused."""
    names.refuse_invisible_characters(text, field)
    if not text:
        raise names.refuse("Name a network such as 192.168.1.0/24, an address, or a computer.", field)
    if text == "*":
        raise names.refuse(
            "A star is everybody who can reach this box. Name your network, for example 192.168.1.0/24.", field
        )
    if re.fullmatch(r"[0-9a-fA-F:.]+(/[0-9]{1,3})?", text) and (":" in text or re.fullmatch(r"[0-9./]+", text)):
        return network(text, field)
    labels = text.lower().split(".")
    if (
        len(text) > LONGEST_NAME
        or not all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", label) for label in labels)
        or labels[-1].isdigit()
    ):
        raise names.refuse(
            f"{text[:60]} is no address, network or name of a computer. Examples: 192.168.1.0/24, 192.168.1.20, imac.local.",
            field,
        )
    return text.lower()


def network(text: str, field: str) -> str:
    """An address or a network; a network has no bits beyond its mask."""
    try:
        found = ipaddress.ip_network(text, strict=False)
        exact = ipaddress.ip_interface(text)
    except ValueError:
        raise names.refuse(f"{text[:60]} is no address and no network. Write it like 192.168.1.0/24.", field) from None
    if found.prefixlen == 0:
        raise names.refuse(f"{text} is the whole world. Name your own network, for example 192.168.1.0/24.", field)
    local = isinstance(found, ipaddress.IPv6Network) and any(found.subnet_of(one) for one in LOCAL)
    if found.prefixlen < LARGEST[found.version] and not local:
        raise names.refuse(
            f"{text} is a large part of the world. Name your own network, for example 192.168.1.0/24; /{LARGEST[found.version]} is the largest.",
            field,
        )
    if found.num_addresses > 1 and exact.ip != found.network_address:
        raise names.refuse(f"{text} is an address inside a network. Did you mean {found} or only {exact.ip}?", field)
    if found.is_multicast or found.is_unspecified:
        raise names.refuse(f"Nobody can have the address {text}.", field)
    return str(found.network_address) if found.num_addresses == 1 else str(found)


def clients(texts: tuple[str, ...], *, field: str = "hosts") -> tuple[str, ...]:
    """All of them, each once, in their order. Raises Refused; at least one and at most ``MOST``."""
    found = tuple(dict.fromkeys(client(text, field=field) for text in texts))
    if not found:
        raise names.refuse("Say which networks or computers may mount the folder, for example 192.168.1.0/24.", field)
    if len(found) > MOST:
        raise names.refuse(f"At most {MOST} networks and computers. Name a network that holds several of them.", field)
    return found


def public(text: str) -> bool:
    """Whether it reaches beyond a home's own networks; a computer's name may be anywhere and is not counted."""
    try:
        return ipaddress.ip_network(text).is_global
    except ValueError:
        return False
