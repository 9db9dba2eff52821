"""Base of the operations on a pairing, known by its id here."""

from __future__ import annotations

from appliance.backups.pairing import receivers
from appliance.backups.remote import settings
from appliance.operation import Operation


class ReceiverOperation(Operation):
    """An operation on another Larder whose backups come here."""

    receiver: str

    def __post_init__(self) -> None:
        settings.check_key(self.receiver, field="receiver")

    @property
    def subject(self) -> str:
        return self.receiver

    def locks(self) -> tuple[str, ...]:
        return (receivers.LOCK,)
