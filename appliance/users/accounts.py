"""Operations on users: create, rename, disable and enable. Setting a password is in ``set_password.py``.

Samba has a password of its own; AFP uses the system's (PAM). Both are set from the same secret in one step.
The system's password gives no access to the box itself: the shell is nologin, and sshd refuses the group.
"""

from __future__ import annotations

import pwd
import shlex
from collections.abc import Iterator

import msgspec

from appliance import command, names
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, command_step, never
from appliance.system import accounts
from appliance.system.accounts import PEOPLE
from appliance.users import drop_from_shares, home_folders
from appliance.users.base import AccountOperation, disconnect_step, user_number
from appliance.users.set_password import password_step


def user_exists(name: str) -> Reason:
    return Reason("user-exists", "There is already a user {user}. Choose another name.", field="name", user=name)


def group_exists(name: str) -> Reason:
    return Reason("group-exists", "There is already a group {group}. Choose another name.", field="name", group=name)


class CreateAccount(AccountOperation, tag="create-account"):
    """Create a user of shares, with the job's secret as password.
    ``home``: the parent of a folder for this user alone."""

    needs_proof = never

    display: str = ""
    home: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        names.check_display_name(self.display)
        if self.home:
            names.existing_dataset(self.home, field="home")

    @property
    def title(self) -> str:
        return Message("Create the user {name}", name=self.name)

    def wants_secret(self) -> bool:
        return True

    def locks(self) -> tuple[str, ...]:
        return ("accounts", *([self.home.split("/", 1)[0], "shares"] if self.home else []))

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.account(self.name):
            yield user_exists(self.name)
        if facts.group(self.name):
            yield group_exists(self.name)
        if self.home:
            yield from home_folders.reasons_against(self.home, self.name, facts)

    def plan(self, facts: Facts) -> Plan:
        steps = [
            Step(
                "user",
                Message("Create {name}", name=self.name),
                accounts.text_of_creation(self.useradd_argv),
                self.make_user,
            ),
            password_step(self.name),
            *(home_folders.home_steps(self.home, self.name, facts) if self.home else ()),
        ]
        return Plan(
            summary=join_messages(
                [
                    Message(
                        "The user {name} can be given access to shares, but cannot sign in to the box itself.",
                        name=self.name,
                    ),
                    Message(
                        " The user gets the folder {home}/{name}, which nobody else may enter.",
                        home=self.home,
                        name=self.name,
                    )
                    if self.home
                    else "",
                ],
                "",
            ),
            steps=tuple(steps),
            identity={"operation": msgspec.to_builtins(self), "home": home_folders.parent_guid(self.home, facts)},
            warnings=tuple(warn_existing_shares(self.name, facts)),
            undo=Message("The user can be removed again."),
        )

    def useradd_argv(self, uid: str) -> list[str]:
        return [
            "useradd",
            "--no-create-home",
            "--home-dir",
            "/nonexistent",
            "--shell",
            "/usr/sbin/nologin",
            "--gid",
            PEOPLE,
            "--uid",
            uid,
            "--comment",
            accounts.account_comment(self.display),
            "--",
            self.name,
        ]

    def make_user(self, work: Work) -> None:
        try:
            pwd.getpwnam(self.name)
        except KeyError:
            argv = self.useradd_argv(str(accounts.new_uid()))
            work.note(shlex.join(argv))
            command.run(argv, timeout=30)
            return
        raise Refused(names.used_by_system(self.name).with_field("name"))

    def probe(self, step: str, facts: Facts) -> bool:
        account = facts.account(self.name)
        if account is None or step == "user":
            return account is not None
        if step == "password":
            return accounts.known_to_samba(self.name) and accounts.has_password(self.name)
        return home_folders.probe_home(self.home, account, step, facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if not facts.account(self.name):
            return Message("There is no user {name} yet. Create the user again.", name=self.name)
        if step in {"user", "password"}:
            return Message("{name} was created but has no password. Set one on the page of users.", name=self.name)
        return Message(
            "{name} was created, but the home folder is not finished. Set access to its files on the folder's page.",
            name=self.name,
        )


class RenameAccount(AccountOperation, tag="rename-account"):
    """Change the display name of a user; the name for signing in stays."""

    needs_proof = never

    display: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        names.check_display_name(self.display)

    @property
    def title(self) -> str:
        return (
            Message("Show {name} as {display}", name=self.name, display=self.display)
            if self.display
            else Message("Show {name} without another name", name=self.name)
        )

    def plan(self, facts: Facts) -> Plan:
        account = facts.account(self.name)
        text = accounts.account_comment(self.display, disabled=bool(account and account.disabled))
        return Plan(
            Message(
                "Pages show {display}. The name for signing in stays {name}.",
                display=self.display or self.name,
                name=self.name,
            ),
            (command_step("comment", Message("Note the name"), ["usermod", "--comment", text, "--", self.name]),),
            {"operation": msgspec.to_builtins(self), "comment": text},
            undo=Message("Yes: change the name again at any time."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        account = facts.account(self.name)
        return account is not None and account.display == self.display


class EnableAccount(AccountOperation, tag="enable-account"):
    """Disable or enable a user. Files, groups and password stay."""

    needs_proof = never

    enabled: bool

    @property
    def title(self) -> str:
        return Message("Enable {name}", name=self.name) if self.enabled else Message("Disable {name}", name=self.name)

    def plan(self, facts: Facts) -> Plan:
        account = facts.account(self.name)
        text = accounts.account_comment(account.display if account else "", disabled=not self.enabled)
        samba = samba_step(
            "samba",
            Message("Enable it in Samba") if self.enabled else Message("Disable it in Samba"),
            ["smbpasswd", "-e" if self.enabled else "-d", self.name],
            self.name,
        )
        lock = "--unlock" if self.enabled else "--lock"
        system = command_step(
            "system", Message("The same for AFP, and note it"), ["usermod", lock, "--comment", text, "--", self.name]
        )
        # Pages show the comment that usermod writes, so it is written after the change in Samba.
        steps = (samba, system) if self.enabled else (samba, system, disconnect_step(self.name))
        return Plan(
            Message("{name} can reach the shares again, with the password from before.", name=self.name)
            if self.enabled
            else Message(
                "{name} cannot reach any share until it is enabled again, and is disconnected now. Files stay.",
                name=self.name,
            ),
            steps,
            {"operation": msgspec.to_builtins(self), "uid": user_number(facts, self.name)},
            undo=Message(
                "{what} it again at any time.", what=Message("Disable") if self.enabled else Message("Enable")
            ),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        account = facts.account(self.name)
        noted = account is not None and account.disabled is not self.enabled
        return noted and accounts.has_password(self.name) is self.enabled

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "This may be only half done for {name}. {what} it again.",
            name=self.name,
            what=Message("Enable") if self.enabled else Message("Disable"),
        )


def warn_existing_shares(name: str, facts: Facts) -> Iterator[str]:
    """Yield a warning for each share that already names this user: it gives access at once."""
    for dataset in drop_from_shares.folders_sharing_with(name, facts):
        yield Message(
            "The share of {dataset} already names {name}, from an earlier user or another box. The new user "
            "can use it at once.",
            dataset=dataset,
            name=name,
        )


def samba_step(name: str, title: str, argv: list[str], account: str) -> Step:
    """A change to a user in Samba; does nothing if Samba has none, as after an interrupted creation."""

    def change_samba_user(work: Work) -> None:
        if accounts.known_to_samba(account):
            command.run(argv, timeout=60)
        else:
            work.note(Message("Samba does not know {account}", account=account))

    return Step(name, title, shlex.join(argv), change_samba_user)
