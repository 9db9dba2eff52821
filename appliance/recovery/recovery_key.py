"""The public half of the recovery phrase: what the box keeps of it, and whether it was typed back.

Root's file has the recipients; what pages may know stands beside the other facts in memory.
A new phrase does not make an earlier one useless before it is typed back: until then secrets are sealed for both.
"""

from __future__ import annotations

import hmac
import time
from pathlib import Path

import msgspec

from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.strict_struct import StrictStruct
from appliance.system import atomic_file, locks, paths

LOCK = "the recovery phrase"


class RecoveryKey(StrictStruct):
    """``made`` and ``confirmed`` in seconds since 1970; ``confirmed`` 0: the phrase was not typed back yet."""

    recipient: str
    made: int
    confirmed: int = 0


class RecoveryKeys(StrictStruct):
    """The newest comes last; one before it is the last that was confirmed."""

    keys: tuple[RecoveryKey, ...] = ()

    @property
    def recipients(self) -> list[str]:
        return [one.recipient for one in self.keys]


class RecoveryState(StrictStruct):
    """What pages know: when the newest phrase was made, when it was typed back, and whether
    an earlier one still opens."""

    made: int = 0
    confirmed: int = 0
    earlier: bool = False


def keys_file() -> Path:
    return paths.AGENT_STATE / "recovery"


def state_file() -> Path:
    return paths.RUN / "recovery"


def read_keys() -> RecoveryKeys:
    """The recipients; none where no phrase was made. A file that cannot be read is none: a new phrase can be made."""
    try:
        return msgspec.json.decode(keys_file().read_bytes(), type=RecoveryKeys)
    except (OSError, msgspec.MsgspecError):
        return RecoveryKeys()


def load_keys() -> RecoveryKeys:
    """The same for who seals: a file that is there and cannot be read is not taken for none. Raises Failed."""
    try:
        return msgspec.json.decode(keys_file().read_bytes(), type=RecoveryKeys)
    except FileNotFoundError:
        return RecoveryKeys()
    except (OSError, msgspec.MsgspecError) as error:
        raise Failed(
            Message("The note of the recovery phrase on this box cannot be read"),
            Message("Make a new recovery phrase on the page Recovery."),
        ) from error


def state_of(keys: RecoveryKeys) -> RecoveryState:
    newest = keys.keys[-1] if keys.keys else None
    if newest is None:
        return RecoveryState()
    return RecoveryState(made=newest.made, confirmed=newest.confirmed, earlier=len(keys.keys) > 1)


def store_keys(keys: tuple[RecoveryKey, ...]) -> RecoveryState:
    paths.AGENT_STATE.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = RecoveryKeys(keys=keys)
    atomic_file.write_atomically(keys_file(), msgspec.json.encode(found))
    return mark(state_of(found))


def mark(state: RecoveryState) -> RecoveryState:
    """Tell pages, which cannot read root's file."""
    try:
        atomic_file.write_atomically(state_file(), msgspec.json.encode(state), mode=0o644)
    except OSError:
        pass
    return state


def read_state() -> RecoveryState | None:
    """What pages may know; None where nobody has asked since the box started."""
    try:
        return msgspec.json.decode(state_file().read_bytes(), type=RecoveryState)
    except (OSError, msgspec.MsgspecError):
        return None


def add_key(recipient: str) -> RecoveryState:
    """A new phrase was made: secrets are sealed for it, and for the last one that was typed back. Raises OSError."""
    with locks.hold_locks([LOCK]):
        confirmed = tuple(one for one in read_keys().keys if one.confirmed)[-1:]
        return store_keys((*confirmed, RecoveryKey(recipient=recipient, made=int(time.time()))))


def confirm_key(recipient: str) -> RecoveryState:
    """The newest phrase was typed back: what is sealed from now on, no earlier one opens. Raises Refused."""
    with locks.hold_locks([LOCK]):
        keys = read_keys().keys
        if not keys:
            raise Refused(Reason("phrase-not-made", "There is no recovery phrase yet. Make one first.", field="phrase"))
        newest = keys[-1]
        if not hmac.compare_digest(newest.recipient, recipient):
            raise Refused(
                Reason(
                    "phrase-of-other",
                    "That is not the newest recovery phrase of this box. Look for the newest paper, or make "
                    "a new phrase.",
                    field="phrase",
                )
            )
        return store_keys((msgspec.structs.replace(newest, confirmed=newest.confirmed or int(time.time())),))
