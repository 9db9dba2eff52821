"""What a volume asks to be served as over iSCSI: a part of its property ``larder:share``, validated field by field.

The secrets of CHAP are not in it, since everybody who has the disks can read a property: ``chap.py`` keeps them.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Literal

import msgspec

from appliance.errors import Reason, Refused
from appliance.facts.datasets import Dataset

# RFC 7143, 4.2.7.2. What begins like this is Larder's; every other target on the box is somebody else's.
PREFIX = "iqn.2026-01.local.larder:"
PORT = 3260
MOST_INITIATORS = 16
MOST_ADDRESSES = 8
LONGEST_INITIATOR = 223  # RFC 7143, 4.2.7.1
# Windows takes secrets of 12 to 16 characters.
SHORTEST_SECRET, LONGEST_SECRET = 12, 16
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
INITIATOR = re.compile(
    r"iqn\.[0-9]{4}-(0[1-9]|1[0-2])\.[a-z0-9][a-z0-9.-]*(:[a-z0-9._:-]+)?"
    r"|eui\.[0-9a-f]{16}|naa\.([0-9a-f]{16}|[0-9a-f]{32})"
)
USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,62}")


def check_target_name(name: str) -> str:
    """The end of a target's name. Raises Refused."""
    if not NAME.fullmatch(name) or ".." in name:
        raise Refused(
            Reason(
                "target-name-invalid",
                "The name begins and ends with a lowercase letter or digit and contains only lowercase "
                "letters, digits, hyphens and single dots, at most 63.",
                field="name",
            )
        )
    return name


def check_initiator(name: str) -> str:
    """The name by which another computer calls itself, in small letters. Raises Refused."""
    found = name.lower()
    if len(found) > LONGEST_INITIATOR or not INITIATOR.fullmatch(found):
        raise Refused(
            Reason(
                "initiator-invalid",
                "{name} is not the name of an initiator. Such a name looks like iqn.1991-05.com.microsoft:my-pc.",
                field="initiators",
                name=name[:80],
            )
        )
    return found


def check_address(text: str) -> str:
    """An address of this box as the kernel spells it. Raises Refused."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        found = None
    if found is None or found.is_multicast or found.is_unspecified or "%" in text:
        raise Refused(
            Reason(
                "portal-address-invalid",
                "{address} is not an address of this box. Leave the field empty for all addresses.",
                field="addresses",
                address=text[:60],
            )
        )
    return str(found)


def check_chap_user(name: str, field: str) -> str:
    if not USER.fullmatch(name):
        raise Refused(
            Reason(
                "chap-user-invalid",
                "The name contains only letters, digits, hyphens, underscores, dots, colons and @, at most 63.",
                field=field,
            )
        )
    return name


def check_chap_secret(text: str, *, field: str = "secret") -> str:
    """A secret for CHAP: 12 to 16 visible characters of ASCII. Raises Refused."""
    if not SHORTEST_SECRET <= len(text) <= LONGEST_SECRET or not re.fullmatch(r"[!-~]+", text):
        raise Refused(
            Reason(
                "chap-secret-invalid",
                "The secret has {least} to {most} letters, digits or signs, without spaces. Windows accepts "
                "no other length.",
                field=field,
                least=SHORTEST_SECRET,
                most=LONGEST_SECRET,
            )
        )
    return text


class Iscsi(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A disk for another computer. ``user`` names who signs in by CHAP, ``back_user`` as whom
    the box signs in to them."""

    name: str
    initiators: tuple[str, ...] = ()  # none: every computer
    addresses: tuple[str, ...] = ()  # none: all of this box
    user: str = ""
    back_user: str = ""
    block: Literal[512, 4096] = 512  # bytes of what the other computer sees as a sector

    def __post_init__(self) -> None:
        check_target_name(self.name)
        if len(self.initiators) > MOST_INITIATORS or len(self.addresses) > MOST_ADDRESSES:
            raise Refused(
                Reason(
                    "target-too-many-names",
                    "Name at most {initiators} initiators and {addresses} addresses.",
                    field="initiators",
                    initiators=MOST_INITIATORS,
                    addresses=MOST_ADDRESSES,
                )
            )
        same_initiators = [check_initiator(one) for one in self.initiators] == list(dict.fromkeys(self.initiators))
        same_addresses = [check_address(one) for one in self.addresses] == list(dict.fromkeys(self.addresses))
        if not same_initiators or not same_addresses:
            raise Refused(
                Reason(
                    "target-names-repeated",
                    "Name each initiator and each address once, in small letters.",
                    field="initiators",
                )
            )
        if self.user:
            check_chap_user(self.user, "user")
        if self.back_user:
            check_chap_user(self.back_user, "back_user")
            if not self.user:
                raise Refused(
                    Reason(
                        "chap-one-way-missing",
                        "This box can only sign in to a computer that signs in here. Give both names.",
                        field="user",
                    )
                )
            if self.back_user == self.user:
                raise Refused(
                    Reason("chap-users-equal", "Choose two different names for the two ways.", field="back_user")
                )

    @property
    def iqn(self) -> str:
        return f"{PREFIX}{self.name}"

    @property
    def open_to_all(self) -> bool:
        """Whether every computer that reaches the box may use the disk: a name alone is easily pretended."""
        return not self.user


def device_of(dataset: str) -> str:
    """Where a volume is as a block device."""
    return f"/dev/zvol/{dataset}"


def place_of(dataset: Dataset) -> str:
    """The place that a share of a dataset names: its mountpoint, or the device of a volume."""
    return device_of(dataset.name) if dataset.kind == "volume" else dataset.mountpoint
