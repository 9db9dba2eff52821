"""The terms that a home user may not know, each in two sentences: for the help beside a heading and the page of help."""

from __future__ import annotations

import msgspec

from web.translation import lazy_text


class Term(msgspec.Struct, frozen=True):
    """A term with its two sentences. ``more`` holds further words that a search finds it by."""

    name: str
    text: str
    more: str = ""


GLOSSARY = {
    "pool": Term(
        lazy_text("Pool"),
        lazy_text(
            "A pool joins disks into one place for your files. "
            "Its layout decides whether none, one or several of them can fail without losing anything."
        ),
        lazy_text("zpool storage volume"),
    ),
    "folder": Term(
        lazy_text("Folder"),
        lazy_text(
            "A folder keeps files in a pool and has its own shares, snapshots and limits. "
            "ZFS calls it a dataset and writes its name with the pool's, such as tank/photos."
        ),
        lazy_text("dataset file system"),
    ),
    "snapshot": Term(
        lazy_text("Snapshot"),
        lazy_text(
            "A snapshot keeps a folder as it is at one moment, so that deleted or changed files can be restored. "
            "It uses space only for what has changed since, and it is no backup, because it is on the same disks."
        ),
        lazy_text("previous versions"),
    ),
    "schedule": Term(
        lazy_text("Snapshot schedule"),
        lazy_text(
            "A snapshot schedule takes snapshots of a folder every 15 minutes, hour, day, week or month. "
            "Folders inside it follow the same schedule unless they have their own."
        ),
        "automatic",
    ),
    "retention": Term(
        lazy_text("Retention"),
        lazy_text(
            "Retention is how many automatic snapshots of each kind are kept, such as 24 hourly and 30 daily ones. "
            "The oldest is destroyed when there are more; snapshots that you took yourself stay."
        ),
        "keep",
    ),
    "scrub": Term(
        lazy_text("Scrub"),
        lazy_text(
            "A scrub reads every block in the pool and compares it with its checksum. "
            "If the pool has redundancy, damaged blocks are repaired from the other disks; files stay available."
        ),
        lazy_text("check verify"),
    ),
    "rebuild": Term(
        lazy_text("Rebuild"),
        lazy_text(
            "A rebuild writes to a new disk what the failed one held, using the other disks of the pool. "
            "Files stay available, but until it has finished the pool survives fewer failed disks."
        ),
        "resilver",
    ),
    "bay": Term(
        lazy_text("Bay"),
        lazy_text(
            "A bay is the place in the box that a disk is in. Its label tells you which disk to pull out when one fails."
        ),
        lazy_text("slot chassis"),
    ),
    "raidz": Term(
        "RAID-Z",
        lazy_text(
            "RAID-Z spreads files over all its disks together with extra data that replaces a lost disk. "
            "RAID-Z1 survives one failed disk, RAID-Z2 two and RAID-Z3 three."
        ),
        lazy_text("raid parity raidz1 raidz2 raidz3"),
    ),
    "mirror": Term(
        lazy_text("Mirror"),
        lazy_text(
            "A mirror keeps the same data on each of its disks and works as long as one of them does. "
            "It is fast and easy to extend, but it holds only as much as one of its disks."
        ),
        "raid1",
    ),
    "checkpoint": Term(
        lazy_text("Checkpoint"),
        lazy_text(
            "A checkpoint remembers the state of a whole pool, so that you can go back to it after a risky change. "
            "Going back loses everything written since, and while the checkpoint exists deleting files frees no space."
        ),
        "rewind",
    ),
    "hold": Term(
        lazy_text("Protect from deletion"),
        lazy_text(
            "A protected snapshot cannot be destroyed, neither by you nor by a schedule, until its protection is removed. "
            "ZFS calls this a hold."
        ),
        lazy_text("hold release"),
    ),
    "quota": Term(
        lazy_text("Limit"),
        lazy_text(
            "A limit, which ZFS calls a quota, is the most space that a folder or a user may use. "
            "When it is reached, nothing more can be written there until something is deleted or the limit is raised."
        ),
        "quota",
    ),
    "smb": Term(
        "SMB",
        lazy_text(
            "SMB lets Windows, Macs, phones and televisions open a folder over the network. "
            "If you are not sure which kind of share to use, use this one."
        ),
        lazy_text("samba windows share cifs"),
    ),
    "nfs": Term(
        "NFS",
        lazy_text(
            "NFS lets Linux computers and media players open a folder over the network. "
            "It asks for no password: every computer at the addresses you enter gets in."
        ),
        lazy_text("linux share"),
    ),
    "afp": Term(
        "AFP",
        lazy_text(
            "AFP lets old Macs, from before OS X 10.9, open a folder and back up to it with Time Machine. "
            "For newer Macs use SMB."
        ),
        lazy_text("apple netatalk mac share"),
    ),
    "spare": Term(
        lazy_text("Spare"),
        lazy_text(
            "A spare is a disk that waits in the box and takes the place of a disk that fails. "
            "The rebuild then begins at once, also while you are away."
        ),
        lazy_text("hot spare"),
    ),
    "log": Term(
        lazy_text("Log"),
        lazy_text(
            "A log is a fast disk that stores writes at once when a program waits for them, as databases do. "
            "Copying files over SMB hardly uses it, so most pools at home need none."
        ),
        lazy_text("slog zil"),
    ),
    "cache": Term(
        lazy_text("Cache"),
        lazy_text(
            "A cache is a fast disk that keeps a second copy of files that are read again and again. "
            "It needs memory for its index, and losing it loses no data."
        ),
        "l2arc",
    ),
    "smart": Term(
        "S.M.A.R.T.",
        lazy_text(
            "S.M.A.R.T. is what a disk reports about its own condition, such as its temperature and unreadable sectors. "
            "Disks often warn before they fail, but some fail without any warning."
        ),
        lazy_text("smart health self-test"),
    ),
}
