"""The settings of other computers: a file each that everybody may read, and beside it the key, which only ssh may.

They lie in a folder of root's. ssh runs as the user larder-ssh, whose group can read the keys and change nothing.
"""

from __future__ import annotations

import grp
import ipaddress
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed, Reason, Refused
from appliance.facts.remote import Remote
from appliance.message import Message, messages_by_text
from appliance.system import paths
from appliance.system.record_files import read_record, read_records

KEY = re.compile(r"[0-9a-f]{8}")
HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){0,9}\.?")
USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
PART = r"[A-Za-z0-9_:][A-Za-z0-9_.:-]*"  # as in larder-peer
REMOTE_NAME = re.compile(rf"{PART}(/{PART})*")
HOST_KEY = re.compile(
    r"(ssh-ed25519|ecdsa-sha2-nistp(?:256|384|521)|ssh-rsa) [A-Za-z0-9+/]{40,1400}={0,2}"
)  # longest: RSA of 8192 bits
LONGEST_NAME = 200
MOST_REMOTES = 16
SSH_USER = "larder-ssh"
ENDING = ".json"  # settings of a computer
IMPORT_ENDING = ".import"  # settings of an import, which lie beside them (appliance/imports/settings.py)
UNFINISHED = ".new"  # a file that is being written
LEFT_OVER_AFTER = 3600.0  # seconds


def check_key(key: str, *, field: str = "remote") -> str:
    if not KEY.fullmatch(key):
        raise Refused(Reason("remote-key-invalid", "That is not another computer of Larder.", field=field))
    return key


def check_host(host: str, *, field: str = "host") -> str:
    """A host name or an address. Raises Refused."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if len(host) > 253 or not HOST.fullmatch(host):
            raise Refused(
                Reason(
                    "host-invalid", "Enter a name such as attic.lan, or an address such as 192.168.1.20.", field=field
                )
            ) from None
    else:
        if "%" in host:
            raise Refused(Reason("address-with-scope", "Enter an address without %.", field=field))
    return host


def check_user(user: str, *, field: str = "user") -> str:
    if not USER.fullmatch(user):
        raise Refused(
            Reason(
                "remote-user-invalid",
                "A user's name contains only letters, digits, hyphens, underscores and dots.",
                field=field,
            )
        )
    return user


def check_remote_name(name: str, *, field: str = "root") -> str:
    """The name of a dataset on another computer, such that ``larder-peer`` takes it. Raises Refused."""
    if len(name) > LONGEST_NAME or not REMOTE_NAME.fullmatch(name):
        raise Refused(
            Reason(
                "remote-name-invalid",
                "A folder there has a name such as tank/attic: letters, digits, hyphens, underscores, dots and colons.",
                field=field,
            )
        )
    return name


def check_host_key(key: str) -> str:
    """A host key as it is kept. Raises Failed: it comes from the network."""
    if not HOST_KEY.fullmatch(key):
        raise Failed(Message("The computer showed no host key that Larder knows"))
    return key


def settings_file(key: str) -> Path:
    return paths.SSH / f"{check_key(key)}{ENDING}"


def key_file(key: str) -> Path:
    return paths.SSH / f"{check_key(key)}.key"


def known_hosts_file(key: str) -> Path:
    return paths.SSH / f"{check_key(key)}.hosts"


def host_alias(key: str) -> str:
    """Under which name the host key is kept: it belongs to this entry, whatever address it has."""
    return f"larder-{check_key(key)}"


# --- reading ----------------------------------------------------------------------------------------------------------
def read_remotes() -> tuple[Remote, ...]:
    """Every computer, by its name. A file that cannot be read is left out."""
    return tuple(sorted(read_records(paths.SSH, Remote), key=lambda one: (one.host, one.root)))


def find_remote(key: str) -> Remote:
    """Raises Refused where it was removed."""
    found = read_record(settings_file(key), Remote)
    if found is None:
        raise Refused(remote_missing())
    return found


def not_confirmed(remote: Remote) -> Reason:
    return Reason(
        "remote-not-confirmed",
        "The host key of {host} was not confirmed yet. Do that on its page first.",
        field="pool",
        host=remote.host,
    )


def check_confirmed(remote: Remote | None) -> Iterator[Reason]:
    """The reasons against signing in there."""
    if remote is None:
        yield remote_missing()
    elif not remote.host_key:
        yield not_confirmed(remote)
    elif remote.has_other_key:
        yield Reason(
            "remote-key-changed",
            "{host} shows another host key than the one that you confirmed. Look at its page first.",
            host=remote.host,
        )


def check_room(remotes: Sequence[Remote]) -> Iterator[Reason]:
    """The reason against one more, if there are enough."""
    if len(remotes) >= MOST_REMOTES:
        yield Reason("remotes-too-many", "There can be at most {most} other computers.", most=MOST_REMOTES)


def remote_missing() -> Reason:
    return Reason("remote-missing", "Backups can no longer go to that computer. Add it again.")


# --- writing (root) ---------------------------------------------------------------------------------------------------
def ssh_group() -> int:
    """The group of the user that ssh runs as. Raises Failed: ssh never runs as root."""
    try:
        return grp.getgrnam(SSH_USER).gr_gid
    except KeyError:
        raise Failed(
            Message("The user {ssh_user} is missing", ssh_user=SSH_USER),
            Message("Install Larder again: sudo make install."),
        ) from None


def make_folder() -> None:
    """The folder of the settings; the agent's umask would keep everybody else out of it."""
    paths.SSH.mkdir(parents=True, exist_ok=True)
    paths.SSH.chmod(0o755)


def write_file(file: Path, text: str, *, mode: int) -> None:
    """Write a file completely or not at all. Raises Failed."""
    beside = file.with_suffix(file.suffix + UNFINISHED)
    try:
        make_folder()
        beside.unlink(missing_ok=True)
        handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as out:
            out.write(text)
            out.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        beside.rename(file)
    except OSError as error:
        raise Failed(Message("{file} could not be written", file=file), error.strerror or "") from error


def write_remote(remote: Remote) -> None:
    """Its problems may be messages. Raises Failed."""
    problems = remote.problem_text, remote.restore_problem_text
    said = messages_by_text(problems)
    remote = replace(remote, problem=str(problems[0]), restore_problem=str(problems[1]), said=said)
    write_file(settings_file(remote.id), msgspec.json.encode(remote).decode() + "\n", mode=0o644)


def make_key(key: str) -> str:
    """Make the key that this box signs in with; its public half. One that is there stays. Raises Failed."""
    file, group = key_file(key), ssh_group()
    public = file.with_suffix(".key.pub")
    if not (file.exists() and public.exists()):
        make_folder()
        remove_leftovers(key)
        file.unlink(missing_ok=True)
        public.unlink(missing_ok=True)
        command.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", host_alias(key), "-f", str(file)], timeout=60)
    os.chown(file, 0, group)
    file.chmod(0o640)  # for that group alone; ssh itself insists on 0600 only where the file is its user's own
    return " ".join(public.read_text().split()[:2])


def pin_host_key(remote: Remote, key: str) -> Remote:
    """From now on only the computer with this host key is talked to. Raises Failed."""
    write_known_host(remote.id, key)
    pinned = replace(remote, host_key=key, offered_key="", problem="", tested=None)
    write_remote(pinned)
    return pinned


def write_known_host(key: str, host_key: str) -> None:
    """What ssh knows the computer by. Raises Failed."""
    check_host_key(host_key)
    write_file(known_hosts_file(key), f"{host_alias(key)} {host_key}\n", mode=0o644)


def remove_leftovers(own: str) -> None:
    """Delete the keys and passwords that belong to nothing, but for ``own``: they are written before the
    settings beside them, and a power cut may come between. Those of the last hour stay, since a job may be
    about to write their settings."""
    for file in paths.SSH.iterdir():
        key = file.name.partition(".")[0]
        if not KEY.fullmatch(key) or key == own:
            continue
        is_known = any((paths.SSH / f"{key}{ending}").exists() for ending in (ENDING, IMPORT_ENDING))
        with suppress(OSError):  # another job may have finished or deleted it meanwhile
            if (not is_known or file.suffix == UNFINISHED) and time.time() - file.lstat().st_mtime >= LEFT_OVER_AFTER:
                file.unlink()


def remove_remote(key: str) -> None:
    """Delete the settings and the key, the key first."""
    for file in (key_file(key), key_file(key).with_suffix(".key.pub"), known_hosts_file(key), settings_file(key)):
        file.unlink(missing_ok=True)
