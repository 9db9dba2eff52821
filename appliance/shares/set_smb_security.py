"""Set signing and encryption of SMB, for all folders at once.

smb.conf(5): SMB2 and later always sign where the client asks, so signing can only be required or left to the
client. Encryption needs SMB3 (Windows 8, OS X 10.11). ``desired`` encrypts for all who can; ``required``
turns the others away, and guests, since a session without a password has no key. The oldest protocol that is
spoken is SMB2 whatever is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.facts.sharing import SmbPolicy
from appliance.formatting import names_text
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.shares import publish, smb_security
from appliance.shares.settings import Smb, wanted_shares

WORDS = {
    "asked": Message("only where a folder or the other computer asks for it"),
    "desired": Message("for every computer that can"),
    "required": Message("for everybody"),
}


class SetSmbSecurity(Operation, tag="set-smb-security"):
    """Choose how connections over SMB are protected, for all folders."""

    needs_proof = never

    signing: Literal["asked", "required"]
    encryption: Literal["asked", "desired", "required"]

    @property
    def policy(self) -> SmbPolicy:
        return SmbPolicy(signing=self.signing, encryption=self.encryption)

    @property
    def title(self) -> str:
        return Message("Change how SMB is protected")

    @property
    def subject(self) -> str:
        return "SMB"

    def locks(self) -> tuple[str, ...]:
        return ("shares",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        guests = (
            [one.name for one, part in wanted_shares(facts, "smb") if isinstance(part, Smb) and part.guest != "no"]
            if self.encryption == "required"
            else []
        )
        if guests:
            yield Reason(
                "guests-not-encrypted",
                "{shares} can be reached without a password, and such connections cannot be encrypted. Turn "
                "off access without a password there first, or encrypt only for computers that can.",
                field="encryption",
                shares=names_text(guests, 5),
            )

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=Message(
                "New connections over SMB are signed {words}, and encrypted {words_2}. Connections that are "
                "open now stay as they are.",
                words=WORDS[self.signing],
                words_2=WORDS[self.encryption],
            ),
            steps=(
                Step(
                    "protect",
                    Message("Store the choice, and apply it in Samba"),
                    Message(
                        "write {path}, checked by Samba\nwrite {file}",
                        path=publish.SERVING["smb"].owned.path,
                        file=smb_security.FILE,
                    ),
                    self.protect,
                    (str(smb_security.FILE),),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            warnings=(
                Message(
                    "Computers from before 2012 can no longer connect: Windows 7, OS X before 10.11, many "
                    "old televisions and scanners."
                ),
            )
            if self.encryption == "required"
            else (),
            undo=Message("You can change this at any time."),
        )

    def protect(self, work: Work) -> None:
        publish.SERVING["smb"].owned.refuse_drift()
        # Samba's file first: what it says is the truth, whenever the power goes.
        publish.publish_shares(replace(publish.agreed_facts(), smb_policy=self.policy), ["smb"], note=work.note)
        smb_security.store_security(self.policy)
        work.note(Message("Samba applies it"))

    def probe(self, step: str, facts: Facts) -> bool:
        one, wanted = publish.SERVING["smb"], publish.agreed_facts()
        # Before the first share there is no file, and it is written with it.
        unused = not one.configured() and not one.shares(wanted)
        return publish.smb_policy() == self.policy and (unused or one.owned.says(one.render(wanted)))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The SMB security page shows the current choice. Choose again if it is wrong.")
