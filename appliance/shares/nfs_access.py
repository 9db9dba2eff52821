"""The access that another computer has over NFS: the uid and gid that the server uses for it, and a test with them.

With ``all_squash`` the kernel's server acts as one number for everybody, without further groups; otherwise as the
numbers that the other computer names (exports(5)). The try is made in a child with those numbers, on the folder itself.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec

from appliance import command
from appliance.facts.sharing import Account
from appliance.shares.settings import NOBODY, Nfs

NOBODYS_NUMBER = 65534
# The first user of most Linux computers, which is who mounts a folder there.
FIRST_USER = 1000
SECONDS = 60


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """As whom the server acts, and what the try found; ``who`` is an account of this box, empty for a stranger."""

    uid: int
    gid: int
    who: str = ""
    for_everybody: bool = False
    stopped_at: str = ""  # the first folder that cannot be passed or listed; empty where all can
    unreadable: str = ""  # the first file that cannot be read
    may_write: bool = False


def squashed_numbers(part: Nfs, accounts: tuple[Account, ...], people_gid: int) -> tuple[int, int] | None:
    """Uid and gid for everybody who mounts it; None where each counts by number. Somebody who is gone is nobody."""
    if not part.everybody_as:
        return None
    uid = next((one.uid for one in accounts if one.name == part.everybody_as), 0)
    return (uid, people_gid) if uid and people_gid else (NOBODYS_NUMBER, NOBODYS_NUMBER)


def acting_numbers(part: Nfs, person: str, accounts: tuple[Account, ...], people_gid: int) -> Numbers:
    """As whom the server would act for that person's computer; without a person for the first user of any computer."""
    if found := squashed_numbers(part, accounts, people_gid):
        who = "" if found[0] == NOBODYS_NUMBER or part.everybody_as == NOBODY else part.everybody_as
        return Numbers(uid=found[0], gid=found[1], who=who, for_everybody=True)
    uid = next((one.uid for one in accounts if one.name == person), 0)
    return Numbers(uid=uid, gid=people_gid, who=person) if uid else Numbers(uid=FIRST_USER, gid=FIRST_USER)


def try_access(asked: Numbers, place: str) -> Numbers:
    """Pass, list, read and write as those numbers; root only. Nothing is changed by it."""
    groups = "--clear-groups" if asked.for_everybody or not asked.who else "--init-groups"
    child = ["setpriv", f"--reuid={asked.uid}", f"--regid={asked.gid}", groups, "--"]

    def run(*argv: str) -> command.Result:
        return command.run([*child, *argv], timeout=SECONDS, accept=range(256))

    path = PurePosixPath(place)
    for folder in [*reversed(path.parents), path]:
        if run("test", "-x", str(folder)).status:
            return msgspec.structs.replace(asked, stopped_at=str(folder))
    if run("find", place, "-mindepth", "1", "-maxdepth", "1", "-print", "-quit").status:
        return msgspec.structs.replace(asked, stopped_at=place)
    unreadable = run("find", place, "-maxdepth", "1", "-type", "f", "!", "-readable", "-print", "-quit").stdout.strip()
    return msgspec.structs.replace(asked, unreadable=unreadable[:300], may_write=not run("test", "-w", place).status)
