"""Seal and open text with age. Sealing needs only the public recipient, opening the phrase;
keys never go into arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from appliance import command
from appliance.errors import Bug, Reason, Refused
from appliance.recovery.phrase import identity_of

RECIPIENT = re.compile(r"age1[02-9ac-hj-np-z]{58}")
SECONDS = 60
LARGEST = 4 * 2**20  # bytes


def recipient_of(phrase: str) -> str:
    """The public recipient of a phrase. Raises Refused where it is none, Failed without age."""
    said = command.run(["age-keygen", "-y"], timeout=SECONDS, given=f"{identity_of(phrase)}\n").stdout.strip()
    if not RECIPIENT.fullmatch(said):
        raise Bug("age-keygen printed no recipient")
    return said


def seal(text: bytes, recipients: Sequence[str]) -> bytes:
    """The text, which the phrase of any of the recipients opens. Raises Failed."""
    if not recipients or not all(RECIPIENT.fullmatch(one) for one in recipients):
        raise Bug("sealing needs recipients")
    words = [word for one in recipients for word in ("-r", one)]
    return command.run(["age", "--encrypt", "--armor", *words], timeout=SECONDS, given=text).stdout.encode()


def open_sealed(sealed: bytes, phrase: str, *, field: str = "phrase") -> bytes:
    """What was sealed. Raises Refused for another phrase or spoiled text, Failed without age."""
    handle = os.memfd_create("identity", os.MFD_CLOEXEC)  # in memory: the key is in no file and in no argument
    try:
        os.write(handle, f"{identity_of(phrase)}\n".encode())
        argv = ["age", "--decrypt", "--identity", f"/proc/self/fd/{handle}"]
        result = command.run(argv, timeout=SECONDS, given=sealed, accept=range(256), holding=handle)
    finally:
        os.close(handle)
    if result.status:
        raise Refused(
            Reason(
                "phrase-does-not-open",
                "This recovery phrase does not open the secrets of that box, or they are damaged. Check "
                "whether the paper is of that box.",
                field=field,
            )
        )
    return result.stdout.encode()
