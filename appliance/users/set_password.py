"""Set a user's password, in Samba and in the system at once: AFP asks the system (PAM)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

import msgspec

from appliance import command, passphrases
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Plan, Step, Work, always
from appliance.users.base import AccountOperation, disconnect_step, user_number


class SetPassword(AccountOperation, tag="set-password"):
    """Set a new password for a user."""

    needs_proof = always

    @property
    def title(self) -> str:
        return Message("Set a new password for {name}", name=self.name)

    def wants_secret(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if (account := facts.account(self.name)) and account.disabled:
            # A new password would enable the user in Samba again.
            yield Reason(
                "user-disabled",
                "{user} is disabled. Enable this user first, then set a new password.",
                field="name",
                user=self.name,
            )

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            Message(
                "{name} gets a new password; the old one stops working. Computers that are connected as "
                "{name} are disconnected.",
                name=self.name,
            ),
            (password_step(self.name), disconnect_step(self.name)),
            {"operation": msgspec.to_builtins(self), "uid": user_number(facts, self.name)},
            undo=Message("No. The old password is not kept, but you can set it again."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        # Nothing shows whether a password was set, so this never claims it.
        return False

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("It is not certain that the new password was stored. Set it again.")


def job_secret(work: Work) -> str:
    """The job's secret, which is the password where a job is about one user."""
    return work.secret()


def password_step(name: str, password: Callable[[Work], str] = job_secret) -> Step:
    """Set the same password in the system and in Samba, by standard input. Samba asks for it twice.

    ``chpasswd`` comes first: ``smbpasswd`` creates the user in Samba, so a user known to Samba has both passwords.
    """
    system, samba = ["chpasswd"], ["smbpasswd", "-s", "-a", name]

    def set_passwords(work: Work) -> None:
        secret = passphrases.check_password(password(work))
        command.run(system, timeout=60, given=f"{name}:{secret}\n")
        command.run(samba, timeout=60, given=f"{secret}\n{secret}\n")

    shown = f"{shlex.join(system)}\n{shlex.join(samba)}"
    return Step("password", Message("Set the password for Samba and AFP"), shown, set_passwords)
