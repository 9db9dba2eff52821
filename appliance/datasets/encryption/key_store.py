"""Stored keys, with which the box unlocks datasets at each start: files of root's, named by the dataset's guid.

A thief of the whole box has keys and data; the disks alone stay locked. A mark on the dataset (``larder:unlock``) tells
pages that a key is stored. It names this box, so that another box does not claim to have the key.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from appliance import command
from appliance.facts import user_properties
from appliance.facts.datasets import Dataset
from appliance.system import atomic_file, paths

FOLDER = paths.AGENT_STATE / "keys"
MACHINE = Path("/etc/machine-id")


def box_mark() -> str:
    """The mark of this box for datasets whose key it stores: a hash, which reveals nothing about the box."""
    try:
        machine = MACHINE.read_bytes().strip()
    except OSError:
        machine = b""
    return hashlib.sha256(b"larder unlock " + machine).hexdigest()[:16]


def is_marked(dataset: Dataset) -> bool:
    """Whether the dataset has the mark of this box."""
    mark = dataset.properties.get(user_properties.UNLOCK)
    return mark is not None and mark.source == "local" and mark.value == box_mark()


def key_path(guid: int) -> Path:
    return FOLDER / str(guid)


def has_key(guid: int) -> bool:
    return key_path(guid).is_file()


def read_key(guid: int) -> str:
    """The passphrase or the key's digits. Raises OSError if none is stored."""
    return key_path(guid).read_text()


def store_key(guid: int, secret: str) -> None:
    """Write the key durably to a file that only root can read."""
    FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic_file.write_atomically(key_path(guid), secret.encode())


def keep_key(dataset: str, guid: int, secret: str) -> None:
    """Store the key of a dataset, and then mark it so. Raises Failed."""
    store_key(guid, secret)
    command.run(["zfs", "set", f"{user_properties.UNLOCK}={box_mark()}", dataset], timeout=60)


def delete_key(guid: int) -> None:
    key_path(guid).unlink(missing_ok=True)
    if FOLDER.is_dir():
        atomic_file.sync_folder(FOLDER)
