"""The names of Larder's own ZFS properties, zfsprops(7) "User Properties", and of its holds:
they move with the disks."""

from __future__ import annotations

PREFIX = "larder:"

# Of datasets, inherited by those below.
SHARE = f"{PREFIX}share"  # what it is shared as: shares/settings.py
POLICY = f"{PREFIX}policy"  # the snapshot schedule: snapshots/policy.py
# Of a dataset alone.
BACKUP = f"{PREFIX}backup"  # where it is copied to, and when: backups/tasks.py
COPY_OF = f"{PREFIX}copy-of"  # what it is a copy of: backups/copies.py
ORIGIN = f"{PREFIX}origin"  # what a copy remembers of its original: backups/origin.py
COPIED = f"{PREFIX}copied"  # up to when a copy is complete: backups/run_mark.py
SENT = f"{PREFIX}sent"  # how the streams of a copy are made: backups/copy_dataset.py
RECEIVES = f"{PREFIX}receives"  # of a folder for the copies of another Larder: backups/pairing/receive_copies.py
RESTORE = f"{PREFIX}restore"  # of the folder that a restore receives into, its token: backups/staging.py
DRILL = f"{PREFIX}drill"  # of what a test of a restore has made: backups/drill_scratch.py
ACCESS = f"{PREFIX}access"  # who may use it, as last set: datasets/access_note.py
PRESET = f"{PREFIX}preset"  # what it was created for: datasets/presets.py
UNLOCK = f"{PREFIX}unlock"  # the box that stores its key: datasets/encryption/key_store.py
BENCHMARK = f"{PREFIX}sweep"  # the token of the benchmark that created it: benchmarks/scratch.py
BOX = f"{PREFIX}box"  # of a pool's top folder: the boxes that left a record on it: facts/box_record.py
REHEARSAL = (
    f"{PREFIX}rehearsal"  # the last rehearsal of a rebuild; on its test data, which disk is out: rehearsal/result.py
)
# Of snapshots.
RUN = f"{PREFIX}run"  # the run of a schedule that took it
TASK = f"{PREFIX}task"  # the key of the backup whose run took it: backups/run_snapshot.py
NOTE = f"{PREFIX}note"  # what its owner wrote about it
