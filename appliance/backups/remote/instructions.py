"""What the owner of another computer does there once, as commands to copy. Each part is checked before it gets here."""

from __future__ import annotations

from pathlib import Path

from appliance.backups.remote.answers import ROOT_OFF
from appliance.facts.remote import Remote

SCRIPT = Path(__file__).with_name("larder-peer")
INSTALLED = "/usr/local/lib/larder-peer"
LOOK_AT_KEYS = "for key in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $key; done"
RIGHTS = "create,mount,receive:append,userprop"
RIGHTS_BEFORE_APPEND = "create,mount,receive,userprop"


def script_text() -> str:
    """The whole of larder-peer."""
    return SCRIPT.read_text()


def key_line(remote: Remote) -> str:
    """The line for ``authorized_keys``: with this key one script can be run, in one folder, and nothing else."""
    return f'restrict,command="{INSTALLED} {remote.root}" {remote.public_key} {remote.id}'


def create_command(remote: Remote) -> str:
    """Make the folder for copies: what it hands on keeps them from being mounted, changed or run."""
    options = " ".join(f"-o {key}={value}" for key, value in {"canmount": "off", **ROOT_OFF}.items())
    return f"zfs create {options} {remote.root}"


def allow_command(remote: Remote, rights: str = RIGHTS) -> str:
    return f"zfs allow -u {remote.user} {rights} {remote.root}"
