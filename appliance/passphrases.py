"""What a passphrase, a password or a key may be."""

from __future__ import annotations

import re

from appliance.errors import Reason, Refused
from appliance.names import refuse_invisible_characters

SHORTEST_PASSPHRASE, LONGEST_PASSPHRASE = 8, 512  # bytes; zfs-load-key(8)


def check_passphrase(text: str, *, field: str = "passphrase") -> str:
    """What unlocks an encrypted dataset: one line of 8 to 512 bytes."""
    refuse_invisible_characters(text, field)
    size = len(text.encode())
    if size < SHORTEST_PASSPHRASE:
        raise Refused(
            Reason(
                "passphrase-too-short",
                "A passphrase has at least {least} characters. Three or four words are easy to remember.",
                field=field,
                least=SHORTEST_PASSPHRASE,
            )
        )
    if size > LONGEST_PASSPHRASE:
        raise Refused(
            Reason(
                "passphrase-too-long",
                "A passphrase has at most {most} bytes.",
                field=field,
                most=LONGEST_PASSPHRASE,
            )
        )
    return text


def key_digits(text: str, *, field: str = "key") -> str:
    """A key of 32 bytes as 64 hexadecimal digits; zfs(8), keyformat=hex."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise Refused(
            Reason("key-malformed", "That is not a key. A key is 64 digits from 0 to 9 and a to f.", field=field)
        )
    return text


def parse_key_file(content: bytes, *, field: str = "key") -> str:
    """The key in a file, as 64 hexadecimal digits. The file contains those digits, or the key's 32 bytes."""
    if len(content) == 32:
        return content.hex()
    try:
        return key_digits(content.decode("ascii").strip(), field=field)
    except (UnicodeDecodeError, Refused):
        raise Refused(
            Reason(
                "key-file-invalid",
                "That file contains no key. Choose the file that was saved when the pool was created.",
                field=field,
            )
        ) from None


def check_password(text: str, *, field: str = "password") -> str:
    """A share password: one line of 8 to 127 bytes (Samba reads it from one line)."""
    refuse_invisible_characters(text, field)
    if len(text) < 8:
        raise Refused(Reason("password-too-short", "A password has at least 8 characters.", field=field))
    if len(text.encode()) > 127:
        raise Refused(Reason("password-too-long", "A password has at most 127 bytes.", field=field))
    return text
