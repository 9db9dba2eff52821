"""The code that can be typed now: one at a time, for ten minutes and five tries.
Root's file, in memory; a restart ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from appliance.backups.pairing import codes
from appliance.backups.pairing.codes import Offer
from appliance.errors import Reason, Refused
from appliance.system import atomic_file, locks, paths

SECONDS_VALID = 600
TRIES = 5


class PendingCode(msgspec.Struct, frozen=True, kw_only=True):
    """``key``: what the code stands for, in hexadecimal. ``until``: of the clock that nobody can set.
    ``tries``: that are left.

    ``port`` and ``host_key`` are those of the ssh server when the code was made.
    """

    receiver: str
    key: str
    until: float
    tries: int
    port: int
    host_key: str


def file() -> Path:
    return paths.RUN / "pairing-code"


def now() -> float:
    """Seconds since the box started, by the clock that nobody can set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@contextmanager
def alone() -> Iterator[None]:
    with locks.hold_locks(["the pairing code"]):
        yield


def write(pending: PendingCode) -> None:
    atomic_file.write_atomically(file(), msgspec.json.encode(pending), mode=0o600)


def read() -> PendingCode | None:
    """The code that is valid now; one whose time is over is removed."""
    try:
        found = msgspec.json.decode(file().read_bytes(), type=PendingCode)
    except (OSError, msgspec.MsgspecError):
        return None
    if found.tries > 0 and now() < found.until:
        return found
    file().unlink(missing_ok=True)
    return None


def offer_code(receiver: str, *, port: int, host_key: str) -> str:
    """A new code for this pairing; an earlier one, of whichever pairing, no longer counts."""
    code = codes.make_code()
    with alone():
        write(
            PendingCode(
                receiver=receiver,
                key=codes.key_of(code).hex(),
                until=now() + SECONDS_VALID,
                tries=TRIES,
                port=port,
                host_key=host_key,
            )
        )
    return code


def withdraw_code(receiver: str) -> None:
    """From now on no code of this pairing counts."""
    with alone():
        found = read()
        if found and found.receiver == receiver:
            file().unlink(missing_ok=True)


def use_code(offer: Offer) -> PendingCode:
    """The code that the offer proves, which no longer counts. Raises Refused.

    A try is counted before it is looked at, so ending this process brings none back.
    """
    with alone():
        found = read()
        if found is None:
            raise Refused(not_open())
        left = msgspec.structs.replace(found, tries=found.tries - 1)
        write(left)
        if not codes.is_proved(bytes.fromhex(found.key), offer):
            if not left.tries:
                file().unlink(missing_ok=True)
            raise Refused(Reason("pairing-code-wrong", "That is not the code that this Larder shows."))
        file().unlink(missing_ok=True)
        return found


def not_open() -> Reason:
    return Reason("pairing-not-open", "This Larder shows no code now.")
