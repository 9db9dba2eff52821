"""What the last restore into a dataset has made: the evidence that settles a restore that was interrupted.

Names, times and sizes prove nothing: what was never changed, or was restored before, looks the same, and a
folder's time does not tell what changed deeper inside. Only one restore at a time goes into a dataset, so
one record for each is enough.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from appliance.system import atomic_file, paths


class RestoreRecord(msgspec.Struct, frozen=True):
    """``operation`` as JSON; ``name``: percent-encoded, what the copy is called;
    ``inode``: its number in the dataset."""

    operation: str
    name: str
    inode: int


def file_of(dataset: int) -> Path:
    return paths.AGENT_STATE / "restored" / str(dataset)


def write_record(dataset: int, record: RestoreRecord) -> None:
    """Store what is about to get its name in the dataset with this guid; on disk when this returns. Raises OSError."""
    file = file_of(dataset)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic_file.write_atomically(file, msgspec.json.encode(record))


def read_record(dataset: int) -> RestoreRecord | None:
    """What the last restore into the dataset has made; None where that is not known. Raises OSError."""
    try:
        return msgspec.json.decode(file_of(dataset).read_bytes(), type=RestoreRecord)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def forget_record(dataset: int) -> None:
    """Forget it, so that no earlier restore is taken for the one that begins. Raises OSError."""
    file = file_of(dataset)
    if file.exists():
        file.unlink()
        atomic_file.sync_folder(file.parent)
