"""Users and groups of a record on this box: with the numbers that own their files, and the passwords that they had."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from appliance import command
from appliance.errors import LarderError, Reason, explain_error
from appliance.facts.box import Facts
from appliance.facts.box_record import BoxRecord, RecordedGroup, RecordedUser
from appliance.facts.sharing import Account, Group
from appliance.formatting import names_text
from appliance.message import Message
from appliance.operation import Step, Work
from appliance.recovery import box_secrets, rid_counter
from appliance.recovery.box_secrets import BoxSecrets, UserSecret, read_sid, samba_line
from appliance.system import accounts
from appliance.users.accounts import CreateAccount
from appliance.users.groups import CreateGroup

NAMED = 12
PASSWORDS_TEXT = "net setlocalsid …\npdbedit --import smbpasswd:…\nchpasswd --encrypted"
SECONDS = 60


def account_of(one: RecordedUser) -> Account:
    return Account(one.name, one.uid, one.display, one.disabled)


def group_of(one: RecordedGroup) -> Group:
    return Group(one.name, one.gid, one.members)


def listed(found: Iterable[str]) -> str:
    """Names in a sentence, the first of them."""
    return names_text(sorted(found), NAMED)


def collisions(record: BoxRecord, facts: Facts) -> Iterator[Reason]:
    """Names and numbers that mean something else on this box: files would belong to somebody else."""
    users = {one.uid: one.name for one in facts.accounts}
    for one in record.users:
        here = facts.account(one.name)
        if (here and here.uid != one.uid) or facts.group(one.name):
            yield name_taken(one.name)
        elif (other := users.get(one.uid)) and other != one.name:
            yield number_taken(one.name, one.uid, other)
    groups = {one.gid: one.name for one in facts.groups}
    for group in record.groups:
        there = facts.group(group.name)
        if (there and there.gid != group.gid) or facts.account(group.name):
            yield name_taken(group.name)
        elif (owner := groups.get(group.gid)) and owner != group.name:
            yield number_taken(group.name, group.gid, owner)


def name_taken(name: str) -> Reason:
    return Reason(
        "recorded-name-taken",
        "This box has a user or group {name} already, with another number than on the other box. Remove it "
        "here, then try again.",
        name=name,
    )


def number_taken(name: str, number: int, other: str) -> Reason:
    return Reason(
        "recorded-number-taken",
        "The number of {name}, {number}, is that of {other} on this box, so files would belong to the wrong "
        "one. Remove {other} here, then try again.",
        name=name,
        number=number,
        other=other,
    )


def shown(argvs: Sequence[Sequence[str]]) -> str:
    """The first of these commands for a plan, with an ellipsis where there are more."""
    return "\n".join([*map(" ".join, argvs[:NAMED]), *(["…"] if len(argvs) > NAMED else [])])


def users_step(record: BoxRecord, facts: Facts) -> Step:
    missing = [one for one in record.users if not facts.account(one.name)]
    text = shown([make(one).useradd_argv(str(one.uid)) for one in missing])

    def bring(work: Work) -> None:
        here = {one.name for one in accounts.read_accounts()}
        for one in record.users:
            if one.name not in here:
                command.run(make(one).useradd_argv(str(one.uid)), timeout=SECONDS)
                work.note(Message("{name} has the number {number}", name=one.name, number=one.uid))
        # Also those of users who were removed there: their files must not become somebody else's.
        note_numbers("account", accounts.UIDS, record.next_uid, (one.uid for one in accounts.read_accounts()))

    return Step("users", Message("Create its users with their numbers"), text or Message("nothing is missing"), bring)


def groups_step(record: BoxRecord, facts: Facts) -> Step:
    missing = [one for one in record.groups if not facts.group(one.name)]
    text = shown([CreateGroup(name=one.name).groupadd_argv(str(one.gid)) for one in missing])

    def bring(work: Work) -> None:
        here = {one.name: one for one in accounts.read_groups()}
        users = {one.name for one in accounts.read_accounts()}
        for one in record.groups:
            if one.name not in here:
                command.run(CreateGroup(name=one.name).groupadd_argv(str(one.gid)), timeout=SECONDS)
            now = here[one.name].members if one.name in here else ()
            wanted = sorted({*now, *one.members} & users)
            if wanted != sorted(now):
                command.run(["gpasswd", "--members", ",".join(wanted), one.name], timeout=SECONDS)
            work.note(Message("{name} has the number {number}", name=one.name, number=one.gid))
        note_numbers("group", accounts.GIDS, record.next_gid, (one.gid for one in accounts.read_groups()))

    return Step("groups", Message("Create its groups with their members"), text or Message("nothing is missing"), bring)


def note_numbers(kind: str, of: range, next_number: int, taken: Iterable[int]) -> None:
    if next_number > accounts.free_number(kind, of, taken):
        accounts.note_given(kind, next_number - 1)


def make(one: RecordedUser) -> CreateAccount:
    return CreateAccount(name=one.name, display=one.display)


def are_there(step: str, record: BoxRecord, facts: Facts) -> bool:
    if step == "users":
        users = {(one.name, one.uid) for one in facts.accounts}
        return all((one.name, one.uid) in users for one in record.users)
    groups = {(one.name, one.gid): set(one.members) for one in facts.groups}
    return all((key := (one.name, one.gid)) in groups and set(one.members) <= groups[key] for one in record.groups)


# --- passwords --------------------------------------------------------------------------------------------------------
def bring_passwords(record: BoxRecord, secrets: BoxSecrets, work: Work) -> None:
    """Give users the passwords that they had, for Samba and for the system.
    One that fails is said and leaves the others."""
    users = {one.name: one for one in record.users}
    others = [one.name for one in accounts.read_accounts() if one.name not in users]
    if record.samba_sid and not others and read_sid() != record.samba_sid:
        command.run(["net", "setlocalsid", record.samba_sid], timeout=SECONDS)
        command.run(
            ["systemctl", "try-restart", "smbd.service"], timeout=SECONDS
        )  # it read the former one at its start
    elif record.samba_sid and others:
        work.note(Message("Windows will treat this as a different computer, because it already had users"))
    failed: list[str] = []
    for one in secrets.users:
        user = users.get(one.name)
        if user is None:
            continue  # it is of nobody in the record
        try:
            bring_one(user, one, work)
        except LarderError as error:
            failed.append(one.name)
            work.note(
                Message(
                    "{name} has no password yet: {explain_error}", name=one.name, explain_error=explain_error(error)
                )
            )
    work.note(Message("{count} passwords were taken over", count=len(secrets.users) - len(failed)))
    if any(one.name in users and one.nt for one in secrets.users):
        go_past_numbers(work)


def go_past_numbers(work: Work) -> None:
    """Have Samba give its next new user a number that none of those has who are there now."""
    try:
        if rids := box_secrets.read_rids():
            rid_counter.raise_next(max(rids.values()) + 1)
    except LarderError as error:
        work.note(
            Message(
                "Samba may refuse the next new user, because it counts from the start: {explain_error}",
                explain_error=explain_error(error),
            )
        )


def bring_one(user: RecordedUser, one: UserSecret, work: Work) -> None:
    if one.system:
        command.run(["chpasswd", "--encrypted"], timeout=SECONDS, given=f"{one.name}:{one.system}\n")
    if one.nt:
        import_to_samba(user, one, work)
    comment = accounts.account_comment(user.display, disabled=user.disabled)
    lock = ["--lock"] if user.disabled and one.system else []
    command.run(["usermod", *lock, "--comment", comment, "--", one.name], timeout=SECONDS)


def import_to_samba(user: RecordedUser, one: UserSecret, work: Work) -> None:
    """Have Samba take over the hash out of a file in memory: in an argument everybody on the box could read it."""
    handle = os.memfd_create("smbpasswd", os.MFD_CLOEXEC)
    try:
        os.write(handle, samba_line(one, user.uid).encode())
        argv = ["pdbedit", "--import", f"smbpasswd:/proc/self/fd/{handle}", "--user", one.name]
        command.run(argv, timeout=SECONDS, holding=handle)
    finally:
        os.close(handle)
    if one.rid:
        argv = ["pdbedit", "-r", "-u", one.name, "-U", str(one.rid)]
        if command.run(argv, timeout=SECONDS, accept=range(256)).status:
            work.note(Message("Windows treats {name} as a new user, with the same password", name=one.name))
