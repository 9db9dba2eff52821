"""Reach another computer: the one way in which ssh is called, and what its complaints mean.

ssh runs as the user larder-ssh, who owns nothing and may read the keys. It takes no settings but these (``-F none``),
asks nobody anything, and talks only to the computer whose host key the owner has confirmed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from appliance import command
from appliance.backups.remote import settings
from appliance.errors import Failed, Refused
from appliance.facts.remote import Remote
from appliance.message import Message

CPUINFO = Path("/proc/cpuinfo")
SECONDS_TO_ANSWER = 120
MOST_SAID = 64 * 1024 * 1024  # bytes of an answer: 100,000 snapshots with room to spare
TOKEN = re.compile(r"[0-9a-f]{1,16}(-[0-9a-f]{1,1900}){1,3}")  # of an interrupted receive, as larder-peer takes it
NOT_SIGNED_IN = 255  # what ssh ends with where it could not connect; every other status comes from the other side
OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "UpdateHostKeys": "no",
    "VerifyHostKeyDNS": "no",
    "IdentitiesOnly": "yes",
    "IdentityAgent": "none",
    "PreferredAuthentications": "publickey",
    "Compression": "no",
    "ConnectTimeout": "20",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "4",
    "ControlMaster": "no",
    "ControlPath": "none",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "LogLevel": "ERROR",
}
# What the processor makes fast comes first: AES is slow without instructions of its own, ChaCha20 is not.
WITH_AES = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr,aes256-ctr"
WITHOUT_AES = "chacha20-poly1305@openssh.com,aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr"
# In this order: the first that the computer has is shown and confirmed.
KEY_TYPES = ("ed25519", "ecdsa", "rsa")
REMOVED_THERE = Message(
    "This box was probably removed there. Look under Backups, Received copies there. To pair it again, "
    "remove it here first."
)


class Unreachable(Failed):
    """The other computer could not be asked; ``code`` names why for tests, like that of a Reason."""

    def __init__(self, code: str, what: str, said: str = "") -> None:
        self.code = code
        super().__init__(what, said)


def as_ssh_user(argv: Sequence[str]) -> list[str]:
    """The command run by larder-ssh, without any capability and without a way to get one."""
    user = settings.SSH_USER
    return [
        "setpriv",
        f"--reuid={user}",
        f"--regid={user}",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--no-new-privs",
        "--",
        *argv,
    ]


def has_aes() -> bool:
    """Whether this processor has instructions for AES."""
    try:
        return re.search(r"^(flags|Features)\s*:.*\baes\b", CPUINFO.read_text(), re.MULTILINE) is not None
    except OSError:
        return False


def ssh_argv(remote: Remote, words: Sequence[str], *, aes: bool = False) -> list[str]:
    """The command that asks the other computer for ``words``, of which each is plain.
    ``aes``: whether both sides are fast at it."""
    for word in words:
        if not TOKEN.fullmatch(word):
            settings.check_remote_name(word)
    return [
        *ssh_words(remote, aes=aes),
        "-l",
        settings.check_user(remote.user),
        "--",
        settings.check_host(remote.host),
        " ".join(words),
    ]


def ssh_words(remote: Remote, *, aes: bool = False) -> list[str]:
    """ssh with its options, up to who signs in where."""
    options = {
        **OPTIONS,
        "HostKeyAlias": settings.host_alias(remote.id),
        "UserKnownHostsFile": str(settings.known_hosts_file(remote.id)),
    }
    return as_ssh_user(
        [
            "ssh",
            "-F",
            "none",
            "-T",
            "-a",
            "-x",
            *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
            "-c",
            WITH_AES if aes else WITHOUT_AES,
            "-i",
            str(settings.key_file(remote.id)),
            "-p",
            str(remote.port),
        ]
    )


def shown(remote: Remote, words: Sequence[str]) -> str:
    """The command as pages show it, without its options."""
    return f"ssh {shlex.quote(f'{remote.user}@{remote.host}')} {shlex.quote(' '.join(words))}"


def ask(remote: Remote, words: Sequence[str], *, timeout: float = SECONDS_TO_ANSWER) -> str:
    """What the other computer answers. Raises Unreachable, and CommandFailed where it was asked and said no."""
    settings.ssh_group()
    if not remote.host_key:
        raise Refused(settings.not_confirmed(remote))
    result = command.run_bounded(ssh_argv(remote, words), most=MOST_SAID, timeout=timeout, accept=range(256))
    if result.status:
        explain(remote, result.status, result.stderr)
        raise command.CommandFailed(result)
    return result.stdout


def explain(remote: Remote, status: int, said: str) -> None:
    """Raise Unreachable with what ssh's status and words mean; return where the other side was asked and said no."""
    if status == NOT_SIGNED_IN:
        raise unreachable(remote, said)
    if status in {126, 127}:
        raise Unreachable(
            "remote-no-peer",
            Message("{host} has no larder-peer where its authorized_keys says", host=remote.host),
            Message("Copy the script there, and make it executable."),
        )


def unreachable(remote: Remote, said: str) -> Unreachable:
    """Why ssh did not get through, from its words, in the order in which they can come."""
    host, place = remote.host, Message("{host}, port {port}", host=remote.host, port=remote.port)
    known = (
        (
            "host key verification failed|remote host identification has changed|no .* host key is known",
            "remote-host-key",
            Message("{host} showed another host key than the one that you confirmed", host=host),
            Message(
                "Nothing was sent. It may have been reinstalled, or another computer answers in its place. "
                "Look at the page of this computer."
            ),
        ),
        (
            r"permission denied \(|too many authentication failures",
            "remote-key-refused",
            Message("{host} does not let this box in as {user}", host=host, user=remote.user),
            REMOVED_THERE
            if remote.paired
            else Message(
                "Add the line with the key to authorized_keys of {user} there. The file must belong to {user}.",
                user=remote.user,
            ),
        ),
        (
            "could not resolve hostname|name or service not known",
            "remote-unknown-name",
            Message("There is no computer with the name {host}", host=host),
            Message("Check the name, or enter its address."),
        ),
        (
            "connection refused",
            "remote-no-ssh",
            Message("Nothing answers at {place}", place=place),
            Message("Switch on the ssh server there, and look at the port."),
        ),
        (
            "no route to host|network is unreachable|timed out|timeout",
            "remote-no-route",
            Message("{place} cannot be reached", place=place),
            Message("Is it switched on and connected to the network?"),
        ),
        (
            "no matching|unable to negotiate",
            "remote-ssh-too-old",
            Message("The ssh of {host} is too old for this box", host=host),
            Message("It needs OpenSSH 7.2 or later."),
        ),
    )
    for pattern, code, what, advice in known:
        if re.search(pattern, said, re.IGNORECASE):
            return Unreachable(code, what, advice)
    return Unreachable("remote-broken-off", Message("The connection to {host} broke off", host=host), said[-300:])


def fetch_host_key(host: str, port: int) -> str:
    """The host key that a computer shows to everybody, as ``ssh-ed25519 AAAA…``. It proves nothing until somebody has
    compared it. Raises Unreachable."""
    settings.ssh_group()
    said = ""
    for kind in KEY_TYPES:  # one at a time: sshd slows down whoever connects often without signing in
        argv = as_ssh_user(["ssh-keyscan", "-T", "20", "-p", str(port), "-t", kind, "--", settings.check_host(host)])
        result = command.run_bounded(argv, most=MOST_SAID, timeout=SECONDS_TO_ANSWER, accept=range(256))
        for line in result.stdout.splitlines():
            words = line.split()
            if len(words) >= 3 and settings.HOST_KEY.fullmatch(key := f"{words[1]} {words[2]}"):
                return key
        said = result.stderr
        if "#" not in said:  # no banner either, so no other kind of key will come
            break
    raise unreachable(Remote("", host, port, "", ""), said or "timed out")
