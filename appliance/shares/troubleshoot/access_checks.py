"""Whether the rights of a share and its files are what keeps somebody out."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.message import Message
from appliance.shares import nfs_access
from appliance.shares.settings import Nfs, ShareSetting
from appliance.shares.troubleshoot.diagnosis import TITLES, Check, Diagnosis


def person_checks(setting: ShareSetting, seen: Diagnosis) -> Iterator[Check]:
    if not seen.person:
        text = Message(
            "Choose who cannot see it: then the user's password and the folder's permissions are looked at too."
        )
        yield Check("person", "empty", Message("No user chosen"), text)
        return
    who = seen.person
    if seen.account == "missing":
        yield Check(
            "account",
            "failed",
            Message("There is no user {who}", who=who),
            Message("It may have been removed."),
            "edit",
        )
        return
    if seen.account == "locked":
        yield Check(
            "account",
            "failed",
            Message("The user {who} is disabled", who=who),
            Message("Set a password: that enables the user again."),
            "password",
        )
    elif seen.account == "strange":
        text = Message("This user has no password for it. Set one: it then works for SMB and AFP.")
        # Samba takes a name that it does not know as a guest.
        state = "attention" if for_guests(setting, seen) else "failed"
        yield Check(
            "account",
            state,
            Message("{service} does not know a password of {who}", service=TITLES[seen.protocol], who=who),
            text,
            "password",
        )
    else:
        yield Check("account", "healthy", Message("The user {who} is enabled", who=who))
    if seen.account == "ready" or for_guests(setting, seen):
        yield from listed_checks(setting, seen)
    if not seen.mounted:
        return
    if seen.stopped_at:
        text = Message("The permissions of that folder do not let this user in.")
        yield Check(
            "permissions",
            "failed",
            Message("{who} may not enter {stopped_at}", who=who, stopped_at=seen.stopped_at),
            text,
            "let-in",
        )
    elif not seen.may_write:
        yield Check(
            "permissions", "attention", Message("{who} may read the folder, not change it", who=who), "", "let-in"
        )
    else:
        yield Check("permissions", "healthy", Message("{who} may read and change the folder", who=who))


def client_checks(part: Nfs, seen: Diagnosis) -> Iterator[Check]:
    """What the other computer's user may do, as whom the server acts for them."""
    client = seen.client
    if seen.account == "missing" and not part.everybody_as:
        yield Check(
            "account",
            "failed",
            Message("There is no user {person}", person=seen.person),
            Message("It may have been removed."),
            "edit",
        )
        return
    if client is None:
        return
    if client.for_everybody:
        who = client.who or Message("nobody")
        if client.who:
            yield Check("account", "healthy", Message("Everybody who mounts it counts as {who}", who=who))
        else:
            text = Message("{everybody_as} is no longer here. Choose somebody else.", everybody_as=part.everybody_as)
            yield Check("account", "failed", Message("Everybody who mounts it counts as nobody"), text, "edit")
    elif client.who:
        who = client.who
        text = Message(
            "{who} has the number {uid} here, with the group {gid}. The user on the other computer needs the "
            "same number, or nothing below applies.",
            who=who,
            uid=client.uid,
            gid=client.gid,
        )
        yield Check("account", "attention", Message("Users count by number"), text, "edit")
    else:
        who = Message("A user with the number {uid}", uid=client.uid)
        text = Message(
            "The first user of most computers has this number. Let everybody count as one user of this box, "
            "or choose above who cannot see it."
        )
        yield Check("account", "attention", Message("Users count by number"), text, "edit")
    yield client_check(part, client, who)


def client_check(part: Nfs, client: nfs_access.Numbers, who: str) -> Check:
    # A user of this box can be let in; a stranger cannot, so there the export itself has to change.
    mend = "let-in" if client.who else "edit"
    if client.stopped_at:
        return Check(
            "permissions",
            "failed",
            Message("{who} cannot open {stopped_at}", who=who, stopped_at=client.stopped_at),
            Message("Opening and listing it was tried with the numbers that the NFS server uses."),
            mend,
        )
    if client.unreadable:
        return Check(
            "permissions",
            "failed",
            Message("{who} cannot read all files", who=who),
            Message("The first is {unreadable}. Change access to the folder's files.", unreadable=client.unreadable),
            mend,
        )
    if part.write and not client.may_write:
        return Check("permissions", "attention", Message("{who} can read the folder, not change it", who=who), "", mend)
    if part.write:
        return Check("permissions", "healthy", Message("{who} can read and change the folder", who=who))
    return Check("permissions", "healthy", Message("{who} can read the folder", who=who))


def for_guests(setting: ShareSetting, seen: Diagnosis) -> bool:
    """Whether the share also takes connections without a password; Samba then has no list of users for it."""
    return seen.protocol == "smb" and setting.smb is not None and setting.smb.guest != "no"


def listed_checks(setting: ShareSetting, seen: Diagnosis) -> Iterator[Check]:
    shared = setting.smb if seen.protocol == "smb" else setting.afp
    if shared is None:
        return
    if for_guests(setting, seen):
        yield Check("listed", "healthy", Message("Everybody in the network may use the share"))
        return
    let_in = {*shared.write, *shared.read}
    if any(who.startswith("@") for who in let_in) and seen.person not in let_in:
        yield Check(
            "listed",
            "empty",
            Message("{person} is let in only as a member of a group", person=seen.person),
            Message("Groups: {names}", names=", ".join(sorted(who[1:] for who in let_in if who.startswith("@")))),
            "edit",
        )
    elif seen.person not in let_in:
        yield Check(
            "listed",
            "failed",
            Message("{person} is not among those who may use the share", person=seen.person),
            "",
            "edit",
        )
    else:
        yield Check("listed", "healthy", Message("{person} is among those who may use the share", person=seen.person))
