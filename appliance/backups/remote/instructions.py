"""What the owner of another computer does there once, as commands to copy. Each part is checked before it gets here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from appliance.backups.remote.answers import ROOT_OFF
from appliance.facts.remote import Remote

SCRIPT = Path(__file__).with_name("larder-peer")
INSTALLED = "/usr/local/lib/larder-peer"
LOOK_AT_KEYS = "for key in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $key; done"
RIGHTS = "create,mount,receive:append,userprop,send"
RIGHTS_BEFORE_APPEND = "create,mount,receive,userprop,send"


def script_text() -> str:
    """The whole of larder-peer."""
    return SCRIPT.read_text()


def key_line(remote: Remote) -> str:
    """The line for ``authorized_keys``: with this key one script can be run, in one folder, and nothing else."""
    return restricted_line(f"{INSTALLED} {remote.root}", remote.public_key, remote.id)


def restricted_line(command: str, public_key: str, name: str) -> str:
    """A line for ``authorized_keys`` that lets a key run this command and nothing else. Each part is plain."""
    return f'restrict,command="{command}" {public_key} {name}'


def create_command(remote: Remote) -> str:
    """Make the folder for copies: what it hands on keeps them from being mounted, changed or run."""
    return shlex.join(create_argv(remote.root))


def create_argv(root: str, more: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    options = {"canmount": "off", **ROOT_OFF, **more}
    return ["zfs", "create", *(word for key, value in options.items() for word in ("-o", f"{key}={value}")), root]


def allow_command(remote: Remote, rights: str = RIGHTS) -> str:
    return shlex.join(allow_argv(remote.user, remote.root, rights))


def allow_argv(user: str, root: str, rights: str = RIGHTS) -> list[str]:
    return ["zfs", "allow", "-u", user, rights, root]
