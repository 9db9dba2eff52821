"""Keys that the owner chose to keep on the box, so that it unlocks by itself: files of root's, one for each dataset's guid.

Whoever takes the whole box then has key and data; disks alone stay closed. A mark on the dataset (``larder:unlock``) lets
pages say so; it names this box, so that on another box nobody is told that a key is there.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from appliance.facts.datasets import Dataset
from appliance.system import atomic_file, paths

FOLDER = paths.AGENT_STATE / "keys"
PROPERTY = "larder:unlock"
MACHINE = Path("/etc/machine-id")


def box_mark() -> str:
    """What this box writes on datasets whose key it keeps: told apart from other boxes, and says nothing of them."""
    try:
        machine = MACHINE.read_bytes().strip()
    except OSError:
        machine = b""
    return hashlib.sha256(b"larder unlock " + machine).hexdigest()[:16]


def is_marked(dataset: Dataset) -> bool:
    """Whether the dataset says that this box keeps its key."""
    found = dataset.properties.get(PROPERTY)
    return found is not None and found.source == "local" and found.value == box_mark()


def key_path(guid: int) -> Path:
    return FOLDER / str(guid)


def has_key(guid: int) -> bool:
    return key_path(guid).is_file()


def read_key(guid: int) -> str:
    """The passphrase, or the key's digits. Raises OSError where there is none."""
    return key_path(guid).read_text()


def store_key(guid: int, secret: str) -> None:
    """Write it durably; only root can read it."""
    FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic_file.write(key_path(guid), secret.encode())


def delete_key(guid: int) -> None:
    key_path(guid).unlink(missing_ok=True)
    if FOLDER.is_dir():
        atomic_file.sync_folder(FOLDER)
