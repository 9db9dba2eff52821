"""The accounts and groups that Larder keeps, as the system has them: users without a shell, known to Samba.

An account is a user whose primary group is Larder's group of users. Its comment field (passwd(5)) says what people call
it and whether it is disabled, since only root may ask Samba or the shadow file. A group is one whose number lies in
Larder's range. Numbers are never given twice: files of somebody who is gone must not become those of somebody new.
"""

from __future__ import annotations

import grp
import pwd
import shlex
from collections.abc import Callable, Iterable

from appliance import command
from appliance.errors import Failed
from appliance.facts import sharing
from appliance.facts.sharing import Account, Group
from appliance.message import Message
from appliance.system import atomic_file, paths

PEOPLE = "larder-people"
PEOPLE_GID = (
    9999  # in deploy/systemd/larder.sysusers; a box that had the group before, or has the number taken, has another
)
DISABLED = "disabled"  # in the last field of the comment
UIDS, GIDS = sharing.UIDS, sharing.GIDS
GIVEN = "given-number-{}"
NUMBER = "$number"  # in the text of a command, for one that is chosen when it runs


def read_accounts() -> tuple[Account, ...]:
    """Everybody who has an account, by name."""
    try:
        first = group_number()
    except Failed:
        return ()
    return tuple(account_of(user) for user in sorted(pwd.getpwall()) if user.pw_gid == first)


def account_of(user: pwd.struct_passwd) -> Account:
    fields = user.pw_gecos.split(",")
    return Account(user.pw_name, user.pw_uid, fields[0], len(fields) > 1 and fields[-1] == DISABLED)


def account_comment(display: str, *, disabled: bool = False) -> str:
    """The comment field of an account."""
    return f"{display},,,,{DISABLED}" if disabled else display


def read_groups() -> tuple[Group, ...]:
    """The groups that were made in Larder, by name."""
    return tuple(
        Group(found.gr_name, found.gr_gid, tuple(sorted(found.gr_mem)))
        for found in sorted(grp.getgrall())
        if found.gr_gid in GIDS
    )


def group_number() -> int:
    """The number of the group of all people. Raises Failed where it was never made."""
    try:
        return grp.getgrnam(PEOPLE).gr_gid
    except KeyError as error:
        raise Failed(
            Message("The group {people} is missing from this system; installing Larder makes it", people=PEOPLE)
        ) from error


def people_number() -> int:
    """The same; 0 where it was never made."""
    try:
        return group_number()
    except Failed:
        return 0


def next_number(kind: str, of: range, taken: Iterable[int]) -> int:
    """A number that was never given before, remembered durably before it is used. Raises Failed where none is left."""
    number = free_number(kind, of, taken)
    if number not in of:
        raise Failed(Message("All numbers for a new {kind} have been given", kind=kind))
    note_given(kind, number)
    return number


def free_number(kind: str, of: range, taken: Iterable[int]) -> int:
    """The number that would be given next, although nobody gets it now."""
    try:
        last = int((paths.AGENT_STATE / GIVEN.format(kind)).read_text())
    except (OSError, ValueError):
        last = of.start - 1
    return max([last, *(one for one in taken if one in of)]) + 1


def note_given(kind: str, number: int) -> None:
    """Remember durably that a number was given, and every one below it."""
    file = paths.AGENT_STATE / GIVEN.format(kind)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic_file.write_atomically(file, f"{number}\n".encode())


def new_uid() -> int:
    return next_number("account", UIDS, (user.pw_uid for user in pwd.getpwall()))


def new_gid() -> int:
    return next_number("group", GIDS, (group.gr_gid for group in grp.getgrall()))


def text_of_creation(argv_with: Callable[[str], list[str]]) -> str:
    """The command as a plan shows it, ready for a shell that knows ``$number``: only the agent may read which numbers
    were given before, so a plan cannot name the next. ``argv_with`` puts a number, the first thing to quote, in it."""
    text = shlex.join(argv_with(NUMBER)).replace(shlex.quote(NUMBER), f'"{NUMBER}"', 1)
    return f"{text}\n# {NUMBER} is the next that was never given to anybody, chosen when this runs."


def known_to_samba(name: str) -> bool:
    result = command.run(["pdbedit", "--list"], timeout=30, accept=range(256))
    return any(line.split(":", 1)[0] == name for line in result.stdout.splitlines())


def has_password(name: str) -> bool:
    """Whether the system itself has a password for the account, which AFP asks for (passwd(1): ``-S`` says P)."""
    result = command.run(["passwd", "--status", name], timeout=30, accept=range(256))
    return result.stdout.split()[1:2] == ["P"]
