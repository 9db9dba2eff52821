"""The recovery phrase: 130 bits of chance as seven groups of four characters, and the age identity that it stands for.

The characters are those of Crockford's base32, which leaves out what is easily mistaken; O is read as 0, I and
L as 1. The last two are a check, so a mistyped phrase is told from a wrong one. The identity is X25519 in
bech32 (age's own spelling).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from appliance.errors import Reason, Refused

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
DIGITS, CHECK, GROUP = 26, 2, 4
LONGEST = 100  # characters as typed
MISREAD = str.maketrans("OIL", "011")
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
PREFIX = "age-secret-key-"


def make_phrase() -> str:
    """A new phrase, as it is printed."""
    digits = "".join(secrets.choice(ALPHABET) for _digit in range(DIGITS))
    return spell_phrase(digits + check_of(digits))


def spell_phrase(typed: str, *, field: str = "phrase") -> str:
    """A phrase as it is printed, whatever it was typed like. Raises Refused where it is none."""
    digits = read_phrase(typed, field=field)
    whole = digits + check_of(digits)
    return "-".join(whole[at : at + GROUP] for at in range(0, len(whole), GROUP))


def incomplete(field: str) -> Reason:
    return Reason(
        "phrase-incomplete",
        "A recovery phrase has seven groups of four letters and digits. Type it as it is printed.",
        field=field,
    )


def check_of(digits: str) -> str:
    number = int.from_bytes(hashlib.sha256(f"larder recovery check {digits}".encode()).digest()[:2])
    return ALPHABET[number >> 5 & 31] + ALPHABET[number & 31]


def read_phrase(typed: str, *, field: str = "phrase") -> str:
    """The digits of a phrase as somebody typed it. Raises Refused where it is none."""
    plain = re.sub(r"[\s-]", "", typed).upper().translate(MISREAD) if len(typed) <= LONGEST else ""
    digits, check = plain[:DIGITS], plain[DIGITS:]
    if len(plain) != DIGITS + CHECK or set(plain) - set(ALPHABET):
        raise Refused(incomplete(field))
    if not hmac.compare_digest(check, check_of(digits)):
        raise Refused(
            Reason(
                "phrase-mistyped", "There is a typing mistake in it. Compare each group with the paper.", field=field
            )
        )
    return digits


def identity_of(phrase: str) -> str:
    """The age identity of a phrase as it was typed. Raises Refused."""
    key = hmac.digest(b"larder recovery phrase, version 1", read_phrase(phrase).encode(), "sha256")
    return bech32(PREFIX, key).upper()


def bech32(prefix: str, content: bytes) -> str:
    """Bytes in bech32 (BIP 173), which age spells its keys in."""
    number, size = int.from_bytes(content), len(content) * 8
    padded = number << (-size % 5)
    count = (size + 4) // 5
    values = [padded >> 5 * (count - 1 - at) & 31 for at in range(count)]
    spread = [*(ord(one) >> 5 for one in prefix), 0, *(ord(one) & 31 for one in prefix)]
    check = 1
    for value in (*spread, *values, *[0] * 6):
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for bit, part in enumerate(GENERATOR):
            check ^= part if top >> bit & 1 else 0
    check ^= 1
    return f"{prefix}1" + "".join(BECH32[one] for one in (*values, *(check >> 5 * (5 - at) & 31 for at in range(6))))
