"""People with a name and a password for shares: system users without a shell, known to Samba."""

from __future__ import annotations

import grp
import pwd
import shlex
from collections.abc import Iterator

import msgspec

from appliance import command, names
from appliance.errors import Reason
from appliance.facts import Account, Facts
from appliance.operation import Operation, Plan, Step, Work

PEOPLE = "larder-people"


def read() -> tuple[Account, ...]:
    """The accounts that Larder keeps: whoever has the group of people as the first group."""
    try:
        group = grp.getgrnam(PEOPLE)
    except KeyError:
        return ()
    return tuple(Account(user.pw_name, user.pw_uid) for user in sorted(pwd.getpwall()) if user.pw_gid == group.gr_gid)


class CreateAccount(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make an account for shares; its password is the job's secret."""

    name: str

    def __post_init__(self) -> None:
        names.account(self.name, field="name")

    @property
    def title(self) -> str:
        return f"Create the account {self.name}"

    @property
    def subject(self) -> str:
        return self.name

    def wants_secret(self) -> bool:
        return True

    def locks(self) -> tuple[str, ...]:
        return ("accounts",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.account(self.name):
            yield Reason(f"There is already an account {self.name}. Choose another name.", "name")

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=f"The account {self.name} can be let into shares. It cannot log in to the box itself.",
            steps=(
                Step("user", f"Create {self.name}", shlex.join(self.useradd), self.make_user),
                password_step(self.name),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            undo="It can be removed again.",
        )

    @property
    def useradd(self) -> list[str]:
        return [
            "useradd",
            "--no-create-home",
            "--shell",
            "/usr/sbin/nologin",
            "--gid",
            PEOPLE,
            "--comment",
            "Larder",
            "--",
            self.name,
        ]

    def make_user(self, work: Work) -> None:
        try:
            pwd.getpwnam(self.name)
        except KeyError:
            command.run(self.useradd, timeout=30)
            return
        raise names.refuse(f"The system itself uses the name {self.name}. Choose another.", "name")

    def happened(self, step: str, facts: Facts) -> bool:
        if step == "user":
            return facts.account(self.name) is not None
        return facts.account(self.name) is not None and known_to_samba(self.name)

    def way_on(self, step: str, facts: Facts) -> str:
        if facts.account(self.name):
            return f"{self.name} is there but has no password. Set one on the page of people."
        return f"There is no account {self.name} yet. Create it again."


class SetPassword(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give an account a new password."""

    name: str

    def __post_init__(self) -> None:
        names.account(self.name, field="name")

    @property
    def title(self) -> str:
        return f"Set a new password for {self.name}"

    @property
    def subject(self) -> str:
        return self.name

    def wants_secret(self) -> bool:
        return True

    def locks(self) -> tuple[str, ...]:
        return ("accounts",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if not facts.account(self.name):
            yield Reason(f"There is no account {self.name}.", "name")

    def plan(self, facts: Facts) -> Plan:
        summary = f"{self.name} gets a new password; the old one stops working."
        return Plan(summary, (password_step(self.name),), {"operation": msgspec.to_builtins(self)})

    def happened(self, step: str, facts: Facts) -> bool:
        # Whether a password was set cannot be seen from outside: say so rather than guess.
        return False

    def way_on(self, step: str, facts: Facts) -> str:
        return "Whether the new password was taken is not certain. Set it again."


def password_step(name: str) -> Step:
    """One password for every protocol: Samba keeps its own, AFP asks the system's (netatalk's DHX2 goes through PAM).

    Samba asks for a new password twice; ``chpasswd`` reads ``name:password``. Both come by standard input.
    """
    samba = ["smbpasswd", "-s", "-a", name]

    def act(work: Work) -> None:
        secret = work.secret()
        for argv, given in ((samba, f"{secret}\n{secret}\n"), (["chpasswd"], f"{name}:{secret}\n")):
            result = command.run(argv, timeout=60, given=given)
            for line in (result.stdout + result.stderr).splitlines():
                work.note(line)

    return Step("password", "Set the password for SMB and AFP", f"{shlex.join(samba)}\nchpasswd", act)


def known_to_samba(name: str) -> bool:
    result = command.run(["pdbedit", "--list"], timeout=30, accept=range(256))
    return any(line.split(":", 1)[0] == name for line in result.stdout.splitlines())
