"""Requests of a pairing on the box that receives: show a code, withdraw it, and answer the box where it was typed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from appliance.backups.pairing import codes, pending, receivers
from appliance.backups.pairing.codes import Acceptance, Offer
from appliance.backups.remote import settings
from appliance.errors import Reason, Refused
from appliance.request import Request
from appliance.system import locks


class MakePairingCode(Request, tag="make-pairing-code"):
    """Make a code for a pairing that nobody has used yet. It is in this answer and nowhere else."""

    receiver: str

    def __post_init__(self) -> None:
        settings.check_key(self.receiver, field="receiver")

    def read(self) -> object:
        found = receivers.find_receiver(self.receiver)
        if found.public_key:
            raise Refused(already_paired(found.name))
        port, host_key = receivers.read_server()
        code = pending.offer_code(found.id, port=port, host_key=host_key)
        until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=pending.SECONDS_VALID)
        with hold_pairings():
            for other in receivers.read_receivers():
                if other.code_until or other.id == found.id:
                    receivers.write_receiver(replace(other, code_until=until if other.id == found.id else None))
        return {"code": code, "minutes": pending.SECONDS_VALID // 60}


class WithdrawPairingCode(Request, tag="withdraw-pairing-code"):
    """From now on the code of this pairing no longer counts."""

    receiver: str

    def __post_init__(self) -> None:
        settings.check_key(self.receiver, field="receiver")

    def read(self) -> object:
        pending.withdraw_code(self.receiver)
        with hold_pairings():
            receivers.write_receiver(replace(receivers.find_receiver(self.receiver), code_until=None))
        return {}


class AcceptPairing(Request, tag="accept-pairing"):
    """Let the box in that proves the code. Asked for from the network, without anybody being signed in."""

    offer: Offer

    def read(self) -> Acceptance:
        used = pending.use_code(self.offer)
        with hold_pairings():
            found = receivers.find_receiver(used.receiver)
            if found.public_key:
                raise Refused(already_paired(found.name))
            receivers.write_receiver(
                replace(
                    found,
                    public_key=self.offer.public_key,
                    sender=self.offer.name,
                    paired=datetime.now(UTC).replace(microsecond=0),
                    code_until=None,
                )
            )
        return codes.make_acceptance(
            bytes.fromhex(used.key),
            self.offer,
            host_key=used.host_key,
            user=receivers.USER,
            root=found.root,
            port=used.port,
        )


def hold_pairings() -> AbstractContextManager[None]:
    """Nobody else changes a pairing meanwhile. Raises Refused."""
    return locks.hold_locks([receivers.LOCK])


def already_paired(name: str) -> Reason:
    return Reason(
        "pairing-done",
        "{name} was paired already. To pair another box with this folder, remove it first.",
        name=name,
    )
