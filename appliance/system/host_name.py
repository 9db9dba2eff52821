"""The name of the box in its network: reading it, and where else on the system it stands.

The name is read from /etc/hostname (hostname(5)), because the services of Larder have a host name of their own in the
kernel (``ProtectHostname=``) that stays as it was when they began.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path

HOSTNAME, HOSTS = Path("/etc/hostname"), Path("/etc/hosts")
OWN = "127.0.1.1"  # the address that Debian gives a box's own name in /etc/hosts
LOOPBACK = re.compile(r"127(\.\d+){3}|::1")


def read_host_name(file: Path = HOSTNAME) -> str:
    """The name that was given to the box; the kernel's where none was."""
    try:
        lines = file.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    named = (line.strip() for line in lines if not line.startswith("#"))
    return next((line for line in named if line), "") or socket.gethostname()


def render_hosts(text: str, former: str, name: str) -> str:
    """The text of /etc/hosts with the new name where the former stood for the box itself; all else stays as it is."""
    lines, named = [], False
    for line in text.splitlines():
        entry, hash_sign, comment = line.partition("#")
        words = entry.split()
        if words and LOOPBACK.fullmatch(words[0]):
            renamed = [words[0], *(rename_host(word, former, name) for word in words[1:])]
            named = named or name in renamed
            if renamed != words:
                rest = f" {hash_sign}{comment}" if hash_sign else ""
                line = "\t".join([renamed[0], " ".join(dict.fromkeys(renamed[1:]))]) + rest
        lines.append(line)
    if not named:
        lines.append(f"{OWN}\t{name}")
    return "\n".join([*lines, ""])


def rename_host(word: str, former: str, name: str) -> str:
    """One name of a line of /etc/hosts, alone or with a domain."""
    head, dot, domain = word.partition(".")
    short = former.partition(".")[0]
    return f"{name}{dot}{domain}" if head.lower() == short.lower() != "localhost" else word
