"""The code of a pairing, and what each box proves with it.

The code is 95 bits of chance and a check character, in four groups of five. It is never sent. Each box proves
that it has it by an HMAC over everything that was said, so a computer in between can neither put a key of its
own in place of one of the two, nor find the code by trying: 95 bits are too many. That is why a self-made
certificate is good enough for the way.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import Literal

from appliance.errors import Bug, Failed, Reason, Refused
from appliance.message import Message
from appliance.recovery.phrase import ALPHABET, MISREAD
from appliance.strict_struct import StrictStruct

DIGITS, GROUP = 19, 5
LONGEST = 60  # characters as typed
LONGEST_MESSAGE = 4096  # bytes of what one box says to the other
PUBLIC_KEY = re.compile(r"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43}")
NONCE, PROOF = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{64}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}")


class Offer(StrictStruct):
    """What the box that sends says first. ``name``: its host name."""

    public_key: str
    name: str
    nonce: str
    proof: str

    def __post_init__(self) -> None:
        if not (
            PUBLIC_KEY.fullmatch(self.public_key)
            and NAME.fullmatch(self.name)
            and NONCE.fullmatch(self.nonce)
            and PROOF.fullmatch(self.proof)
        ):
            raise Refused(Reason("pairing-offer-invalid", "That is not how another Larder asks to be paired."))

    @property
    def said(self) -> tuple[str, ...]:
        return (self.public_key, self.name, self.nonce)


class Acceptance(StrictStruct):
    """What the box that receives answers. Its text comes from the network: each field is checked by who uses it."""

    host_key: str
    user: str
    root: str
    port: int
    proof: str

    @property
    def said(self) -> tuple[str, ...]:
        return (self.host_key, self.user, self.root, str(self.port))


# --- the code ---------------------------------------------------------------------------------------------------------
def make_code() -> str:
    """A new code, as it is shown."""
    return spell_digits("".join(secrets.choice(ALPHABET) for _digit in range(DIGITS)))


def check_of(digits: str) -> str:
    return ALPHABET[hashlib.sha256(f"larder pairing check {digits}".encode()).digest()[0] & 31]


def spell_digits(digits: str) -> str:
    whole = digits + check_of(digits)
    return "-".join(whole[at : at + GROUP] for at in range(0, len(whole), GROUP))


def spell_code(typed: str, *, field: str = "secret") -> str:
    """A code as it is shown, whatever it was typed like. Raises Refused where it is none."""
    return spell_digits(read_code(typed, field=field))


def read_code(typed: str, *, field: str = "secret") -> str:
    """The digits of a code as somebody typed it. Raises Refused where it is none."""
    plain = re.sub(r"[\s-]", "", typed).upper().translate(MISREAD) if len(typed) <= LONGEST else ""
    if len(plain) != DIGITS + 1 or set(plain) - set(ALPHABET):
        raise Refused(
            Reason(
                "pairing-code-incomplete",
                "A code has four groups of five letters and digits. Type it as the other Larder shows it.",
                field=field,
            )
        )
    if not hmac.compare_digest(plain[DIGITS:], check_of(plain[:DIGITS])):
        raise Refused(
            Reason("pairing-code-mistyped", "There is a typing mistake in the code. Compare each group.", field=field)
        )
    return plain[:DIGITS]


def key_of(code: str) -> bytes:
    """The key that both boxes have from the code. Raises Refused where it is none."""
    return hmac.digest(b"larder pairing, version 1", read_code(code).encode(), "sha256")


# --- proofs -----------------------------------------------------------------------------------------------------------
def proof_of(key: bytes, side: Literal["sender", "receiver"], said: Sequence[str]) -> str:
    """What only one of the two boxes can say of these words. A side's proof is none of the other's."""
    if any("\n" in word for word in said):
        raise Bug("what is proved has one line each")
    return hmac.digest(key, "\n".join(("larder pairing 1", side, *said)).encode(), "sha256").hex()


def make_offer(key: bytes, public_key: str, name: str) -> Offer:
    said = (public_key, name, secrets.token_hex(16))
    return Offer(public_key=said[0], name=said[1], nonce=said[2], proof=proof_of(key, "sender", said))


def is_proved(key: bytes, offer: Offer) -> bool:
    """Whether who offers has the code. Takes as long for every wrong proof."""
    return hmac.compare_digest(offer.proof, proof_of(key, "sender", offer.said))


def make_acceptance(key: bytes, offer: Offer, *, host_key: str, user: str, root: str, port: int) -> Acceptance:
    said = (*offer.said, host_key, user, root, str(port))
    return Acceptance(host_key=host_key, user=user, root=root, port=port, proof=proof_of(key, "receiver", said))


def check_acceptance(key: bytes, offer: Offer, answer: Acceptance, host: str) -> None:
    """Raises Failed where the answer is not from the box that shows the code, or not to this offer."""
    if any("\n" in word for word in answer.said) or not hmac.compare_digest(
        answer.proof.encode(errors="replace"), proof_of(key, "receiver", (*offer.said, *answer.said)).encode()
    ):
        raise Failed(
            Message("{host} did not prove that it knows the code", host=host),
            Message(
                "Nothing was set up here. Another computer may answer in its place. Look at the address, "
                "remove this box on the other Larder, and begin again there."
            ),
        )
