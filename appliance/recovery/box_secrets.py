"""The secrets of the box that are sealed with its record: passwords of users as Samba and the
system keep them, stored keys.

A password itself is known to nobody; what is kept of it (the NT hash, the hash of shadow(5)) opens shares all the same,
so it is treated like one: it goes through memory and standard input alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from appliance import command, names, passphrases
from appliance.datasets.encryption import key_store
from appliance.errors import Failed, Refused
from appliance.facts import box_record
from appliance.message import Message
from appliance.recovery import mail_password
from appliance.shares.iscsi import chap
from appliance.strict_struct import StrictStruct

VERSION = 1
SHADOW = Path("/etc/shadow")
NT_HASH = re.compile(r"[0-9A-F]{32}")
CRYPTED = re.compile(r"\$[0-9a-z]{1,4}\$[./A-Za-z0-9$=,_-]{10,400}")
FLAGS = re.compile(r"\[[A-Z ]{11}\]")
SID_LINE = re.compile(r"SID for domain \S+ is: (S-1-5-21(?:-[0-9]{1,10}){3})")
MOST_KEYS = 2000
SECONDS = 60


class UserSecret(StrictStruct):
    """``nt``: Samba's hash; ``flags`` as in smbpasswd(5); ``rid``: the user's number for Windows, 0 where unknown;
    ``system``: the hash that the system keeps, which AFP asks for."""

    name: str
    nt: str = ""
    flags: str = ""
    rid: int = 0
    system: str = ""

    def __post_init__(self) -> None:
        names.check_user_name(self.name)
        if (
            (self.nt and not NT_HASH.fullmatch(self.nt))
            or (self.flags and not FLAGS.fullmatch(self.flags))
            or (self.system and not CRYPTED.fullmatch(self.system))
            or not 0 <= self.rid < 2**31
        ):
            raise Refused(box_record.malformed())


class BoxSecrets(StrictStruct):
    """``keys``: what unlocks a dataset, by its guid. ``chap``: the secrets of its iSCSI target, likewise. ``mail``: the
    password of the mail server."""

    version: int
    box: str
    users: tuple[UserSecret, ...] = ()
    keys: dict[str, str] = {}
    chap: dict[str, str] = {}
    mail: str = ""

    def __post_init__(self) -> None:
        if (
            self.version != VERSION
            or not box_record.BOX_ID.fullmatch(self.box)
            or len(self.users) > box_record.MOST_USERS
            or max(len(self.keys), len(self.chap)) > MOST_KEYS
            or not mail_password.is_password(self.mail)
        ):
            raise Refused(box_record.malformed())
        for guid in (*self.keys, *self.chap):
            if not re.fullmatch(r"[1-9][0-9]{0,19}", guid):
                raise Refused(box_record.malformed())
        for key in self.keys.values():
            passphrases.check_passphrase(key)
        for text in self.chap.values():
            chap.parse_secrets(text)

    @property
    def text(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")


def parse_secrets(text: bytes) -> BoxSecrets:
    """The secrets in an opened text. Raises Refused; what it says never ends in the message."""
    try:
        return msgspec.json.decode(text, type=BoxSecrets)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, Refused):
        raise Refused(box_record.malformed()) from None


# --- reading this box -------------------------------------------------------------------------------------------------
def read_box_secrets(box: str, users: Iterable[str]) -> BoxSecrets:
    """What this box has. A tool that is not installed leaves its part out. Raises Failed where one fails or does not
    answer, or a file cannot be read: sealed, it would look as if there had been nothing."""
    samba, system, rids = read_samba(), read_shadow(), read_rids()
    found = (
        UserSecret(
            name=name,
            nt=samba.get(name, ("", ""))[0],
            flags=samba.get(name, ("", ""))[1],
            rid=rids.get(name, 0),
            system=system.get(name, ""),
        )
        for name in users
    )
    return BoxSecrets(
        version=VERSION,
        box=box,
        users=tuple(one for one in found if one.nt or one.system),
        keys=read_files(key_store.FOLDER),
        chap=read_files(chap.FOLDER),
        mail=mail_password.read_mail_password(),
    )


def read_samba() -> dict[str, tuple[str, str]]:
    """By the name of each user the NT hash and the flags, in the order of smbpasswd(5): name, uid, LM, NT, flags."""
    return parse_samba(ask(["pdbedit", "-L", "-w"]))


def ask(argv: list[str], accept: Collection[int] = (0,)) -> str:
    """What a tool of Samba's says; nothing where it is not installed. Raises Failed."""
    try:
        return command.run(argv, timeout=SECONDS, accept=accept).stdout
    except command.CommandMissing:
        return ""


def parse_samba(said: str) -> dict[str, tuple[str, str]]:
    rows = (line.split(":") for line in said.splitlines())
    return {
        row[0]: (row[3], row[4])
        for row in rows
        if len(row) >= 5 and NT_HASH.fullmatch(row[3]) and FLAGS.fullmatch(row[4])
    }


def read_rids() -> dict[str, int]:
    """By the name of each user the last part of its SID."""
    return parse_rids(ask(["pdbedit", "-L", "-v"]))


def parse_rids(said: str) -> dict[str, int]:
    found: dict[str, int] = {}
    name = ""
    for line in said.splitlines():
        key, _colon, value = line.partition(":")
        if key.strip() == "Unix username":
            name = value.strip()
        elif key.strip() == "User SID" and (rid := value.strip().rpartition("-")[2]).isdigit():
            found[name] = int(rid)
    return found


def read_shadow() -> dict[str, str]:
    """By the name of each user the hash that the system keeps, also where it is locked (passwd -l puts a ! before it).
    Raises Failed."""
    try:
        lines = SHADOW.read_text(errors="replace").splitlines()
    except OSError as error:
        raise unreadable(SHADOW, error.strerror) from error
    rows = (line.split(":") for line in lines)
    return {row[0]: found for row in rows if len(row) > 1 and CRYPTED.fullmatch(found := row[1].lstrip("!"))}


def read_sid() -> str:
    """Who this box is for Windows; empty where Samba does not say."""
    found = SID_LINE.search(ask(["net", "getlocalsid"], accept=range(256)))
    return found[1] if found else ""


def read_files(folder: Path) -> dict[str, str]:
    """The small files of a folder of root's that are named by a guid; none where there is no such folder.
    Raises Failed."""
    try:
        files = sorted(folder.iterdir())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unreadable(folder, error.strerror) from error
    found = {}
    for file in files:
        if file.name.isdecimal() and file.is_file():
            try:
                found[file.name] = file.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise unreadable(file, getattr(error, "strerror", "")) from error
    return found


def unreadable(place: Path, said: str | None) -> Failed:
    return Failed(Message("{place} cannot be read", place=place), said or "")


# --- writing to this box ----------------------------------------------------------------------------------------------
def samba_line(one: UserSecret, uid: int) -> str:
    """A user in the format of smbpasswd(5), which pdbedit can bring in. Set now:
    Samba wants a password changed that was set never."""
    flags = one.flags or "[U          ]"
    return f"{one.name}:{uid}:{'X' * 32}:{one.nt}:{flags}:LCT-{int(time.time()):08X}:\n"
