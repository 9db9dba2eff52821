"""Requests about the recovery phrase: told once, for the administrator's password, and kept nowhere."""

from __future__ import annotations

import msgspec

from appliance.agent import proof
from appliance.errors import Reason, Refused
from appliance.facts.box_record import BoxRecord
from appliance.names import existing_pool
from appliance.recovery import phrase, records, recovery_key, seal
from appliance.request import Request


class ReadRecovery(Request, tag="read-recovery"):
    """Whether there is a recovery phrase, and whether it was typed back."""

    def read(self) -> object:
        return recovery_key.mark(recovery_key.state_of(recovery_key.read_keys()))


class MakeRecoveryPhrase(Request, tag="make-recovery-phrase"):
    """Make a new recovery phrase. Needs the administrator's password."""

    password: str

    def __post_init__(self) -> None:
        if len(self.password.encode(errors="surrogatepass")) > proof.LONGEST:
            raise Refused(Reason("recovery-password-wrong", "The password is wrong.", field="password"))

    def read(self) -> object:
        proof.check(self.password)
        made = phrase.make_phrase()
        state = recovery_key.add_key(seal.recipient_of(made))
        return {"phrase": made, "state": msgspec.to_builtins(state)}


class ConfirmRecoveryPhrase(Request, tag="confirm-recovery-phrase"):
    """The newest phrase was typed back, so it is on paper."""

    phrase: str

    def __post_init__(self) -> None:
        if phrase.spell_phrase(self.phrase) != self.phrase:
            raise Refused(phrase.incomplete("phrase"))

    def read(self) -> object:
        return recovery_key.confirm_key(seal.recipient_of(self.phrase))


class ReadBoxRecord(Request, tag="read-box-record"):
    """The record that a box has left on a pool. Nothing of its secrets."""

    pool: str
    box: str

    def __post_init__(self) -> None:
        existing_pool(self.pool)
        records.check_box(self.box)

    def read(self) -> BoxRecord:
        return records.read_record(self.pool, self.box)
