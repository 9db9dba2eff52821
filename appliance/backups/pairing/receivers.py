"""Other Larders whose backups come to this box: a file each, which everybody may read, and the keys that let them in.

All of them sign in as the user larder-receive, which owns nothing but ``visits``. Its keys are in a file of root's, and
each can run one command: ``receive-copies`` with the id of its pairing and its folder. That looks for the file of the
pairing each time, so once it is gone, connections that are still open can do nothing either.
"""

from __future__ import annotations

import os
import pwd
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from appliance import command
from appliance.backups.remote import instructions, settings
from appliance.errors import Failed, Reason, Refused
from appliance.facts.receiver import Receiver
from appliance.message import Message
from appliance.system import atomic_file, paths
from appliance.system.record_files import read_record, read_records

USER = "larder-receive"
GATE = "/usr/local/lib/larder/receive-copies"
KEYS = ".ssh/authorized_keys"
VISITS = "visits"  # the one folder that is theirs: an empty file for each pairing
# As they are for this user (sshd(8)).
SHOW_SETTINGS = ("sshd", "-T", "-C", f"user={USER},host=localhost,addr=127.0.0.1,laddr=127.0.0.1,lport=22")
REMOVING = "removing"
MOST_RECEIVERS = 16
SECONDS_TO_END = 20.0
SECONDS_BETWEEN_LOOKS = 0.2
LOCK = "pairings"  # of whoever reads the note of a pairing and writes it anew
PROCESSES = Path("/proc")
PAIRING = "LARDER_PAIRING"  # in the environment of whatever runs for a pairing: its id


def receiver_file(key: str) -> Path:
    return paths.RECEIVE / f"{settings.check_key(key, field='receiver')}.json"


def removing_file(key: str) -> Path:
    """Where the note of a pairing is while it is removed: the key's command looks for it elsewhere."""
    return paths.RECEIVE / REMOVING / f"{settings.check_key(key, field='receiver')}.json"


def keys_file() -> Path:
    return paths.RECEIVE / KEYS


# --- reading ----------------------------------------------------------------------------------------------------------
def read_receivers() -> tuple[Receiver, ...]:
    """Every pairing, by its folder. A file that cannot be read is left out."""
    return tuple(sorted(read_records(paths.RECEIVE, Receiver), key=lambda one: (one.root, one.id)))


def read_known() -> tuple[Receiver, ...]:
    """The same with those that are let in no more, and whose removal has not come to its end."""
    let_in = read_receivers()
    others = {one.id for one in let_in}
    going = (one for one in read_records(paths.RECEIVE / REMOVING, Receiver) if one.id not in others)
    return tuple(sorted((*let_in, *going), key=lambda one: (one.root, one.id)))


def read_visits() -> tuple[Receiver, ...]:
    """The same, each with when that box last signed in, as ``receive-copies`` has left it in a file."""
    return tuple(replace(one, seen=last_visit(one.id)) for one in read_known())


def last_visit(key: str) -> datetime | None:
    """To the minute, so that the inventory does not change with every word of a run. None where it is not known."""
    try:
        at = (paths.RECEIVE / VISITS / settings.check_key(key, field="receiver")).lstat().st_mtime
        return datetime.fromtimestamp(at // 60 * 60, UTC)
    except (OSError, OverflowError, ValueError):
        return None


def find_receiver(key: str) -> Receiver:
    """Raises Refused where it was removed."""
    found = read_record(receiver_file(key), Receiver)
    if found is None:
        raise Refused(receiver_missing())
    return found


def find_known(key: str) -> Receiver:
    """The same for one whose removal has not come to its end."""
    return read_record(removing_file(key), Receiver) or find_receiver(key)


def receiver_missing() -> Reason:
    return Reason("receiver-missing", "That pairing was removed. Make a new one.")


def read_server() -> tuple[int, str]:
    """The port and the host key of this box's ssh server. Raises Failed where there is none."""
    advice = Message("Install one, then try again: apt install openssh-server.")
    try:
        said = command.run(list(SHOW_SETTINGS), timeout=60).stdout
    except command.CommandFailed as failed:
        raise Failed(
            Message("The ssh server of this box does not run"),
            Message("{said} Start it: systemctl start ssh.", said=failed.said),
        ) from failed
    except command.CommandMissing as missing:
        raise Failed(Message("This box has no ssh server"), advice) from missing
    rows = [line.split(maxsplit=1) for line in said.splitlines()]
    if not any(row[0] == "authorizedkeysfile" and KEYS in row[1].split() for row in rows if len(row) == 2):
        raise Failed(
            Message("The ssh server of this box looks for keys elsewhere"),
            Message("Larder needs {keys} in AuthorizedKeysFile of sshd_config, which is the usual setting.", keys=KEYS),
        )
    ports = [int(row[1]) for row in rows if len(row) == 2 and row[0] == "port" and row[1].isdecimal()]
    for kind in ("ed25519", "ecdsa", "rsa"):  # the order in which the other box would ask for one
        for row in rows:
            if len(row) == 2 and row[0] == "hostkey" and kind in row[1] and (key := read_public(Path(f"{row[1]}.pub"))):
                return (ports or [22])[0], key
    raise Failed(Message("The ssh server of this box has no host key"), Message("Make one: ssh-keygen -A."))


def read_public(file: Path) -> str:
    try:
        key = " ".join(file.read_text().split()[:2])
    except (OSError, UnicodeDecodeError):
        return ""
    return key if settings.HOST_KEY.fullmatch(key) else ""


# --- writing (root) ---------------------------------------------------------------------------------------------------
def check_user() -> None:
    """Raises Failed where the user that they sign in as is missing."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        raise Failed(
            Message("The user {user} is missing", user=USER), Message("Install Larder again: sudo make install.")
        ) from None


def make_folder(folder: Path) -> None:
    """A folder of root's that everybody may enter; the agent's umask would keep sshd's user out of it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)


def write_receiver(receiver: Receiver) -> None:
    """Note a pairing, then let in whom the notes name. Raises Failed."""
    try:
        make_folder(paths.RECEIVE)
        text = msgspec.json.encode(receiver) + b"\n"
        atomic_file.write_atomically(receiver_file(receiver.id), text, mode=0o644)
    except OSError as error:
        raise Failed(Message("The pairing could not be noted"), error.strerror or "") from error
    write_keys()


def write_keys() -> None:
    """Have the keys of all pairings, and no others, let in. Raises Failed."""
    lines = [key_line(one) for one in read_receivers() if one.public_key]
    text = "".join(f"{line}\n" for line in ("# Written by Larder: other Larders whose backups come here.", *lines))
    try:
        make_folder(paths.RECEIVE)
        make_folder(keys_file().parent)
        atomic_file.write_atomically(keys_file(), text.encode(), mode=0o644)
    except OSError as error:
        raise Failed(Message("The keys of other Larders could not be written"), error.strerror or "") from error


def key_line(receiver: Receiver) -> str:
    root = settings.check_remote_name(receiver.root)
    return instructions.restricted_line(f"{GATE} {receiver.id} {root}", receiver.public_key, f"larder-{receiver.id}")


def end_access(receiver: Receiver) -> None:
    """Let the other box in no more, and end what it is doing here. It can be done again.
    Raises Failed where a process of it does not end."""
    put_aside(receiver.id)
    write_keys()
    until = time.monotonic() + SECONDS_TO_END
    while pids := list(processes_of(receiver)):
        if time.monotonic() > until:
            raise Failed(
                Message(
                    "{receiver} is no longer let in, but what it was sending has not ended yet", receiver=receiver.name
                ),
                Message("Its access ends when the connection does. Choose Remove again to check."),
            )
        for pid in pids:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        time.sleep(SECONDS_BETWEEN_LOOKS)


def put_aside(key: str) -> None:
    """Have a pairing let nobody in, and keep its note until the removal has come to its end. Raises Failed."""
    try:
        make_folder(removing_file(key).parent)
        try:
            receiver_file(key).replace(removing_file(key))
        except FileNotFoundError:
            return  # an earlier try has done it
        atomic_file.sync_folder(removing_file(key).parent)
        atomic_file.sync_folder(paths.RECEIVE)
    except OSError as error:
        raise Failed(Message("The pairing could not be removed"), error.strerror or "") from error


def forget_receiver(key: str) -> None:
    """Drop the note of a pairing that was put aside. Raises Failed."""
    try:
        removing_file(key).unlink(missing_ok=True)
    except OSError as error:
        raise Failed(Message("The pairing could not be removed"), error.strerror or "") from error


def processes_of(receiver: Receiver) -> Iterator[int]:
    """The processes of larder-receive that work for this pairing: its id or its folder is among their words.
    One that sends from a token back has neither, so what ``receive-copies`` has put into the environment counts too."""
    for pid, words in running():
        named = any(word in {receiver.id, receiver.root} or word.startswith(f"{receiver.root}/") for word in words)
        if named or f"{PAIRING}={receiver.id}" in split_words(PROCESSES / str(pid) / "environ"):
            yield pid


def copies_in_use(receiver: Receiver) -> set[str]:
    """The copies of this pairing that are received or sent back at the moment."""
    names = (word.partition("@")[0] for _pid, words in running() for word in words)
    return {name for name in names if name.startswith(f"{receiver.root}/")}


def running() -> Iterator[tuple[int, list[str]]]:
    """The processes of larder-receive, each with its words."""
    try:
        owner = pwd.getpwnam(USER).pw_uid
    except KeyError:
        return
    for entry in PROCESSES.iterdir():
        try:
            if not entry.name.isdecimal() or entry.stat().st_uid != owner:
                continue
        except OSError:
            continue
        yield int(entry.name), split_words(entry / "cmdline")


def split_words(place: Path) -> list[str]:
    """What the kernel tells of a process in words; none where it has ended."""
    try:
        return place.read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
