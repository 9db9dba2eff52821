"""The terms that a home user may not know, each in two sentences: for the help beside a heading and the page of help."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A term with its two sentences. ``more`` holds further words that a search finds it by."""

    name: str
    text: str
    more: str = ""


GLOSSARY = {
    "pool": Term(
        "Pool",
        "A pool joins disks into one place for your files. "
        "Its layout decides whether none, one or several of them can fail without losing anything.",
        "zpool storage volume",
    ),
    "folder": Term(
        "Folder",
        "A folder keeps files in a pool and has its own shares, snapshots and limits. "
        "ZFS calls it a dataset and writes its name with the pool's, such as tank/photos.",
        "dataset file system",
    ),
    "snapshot": Term(
        "Snapshot",
        "A snapshot keeps a folder as it is at one moment, so that deleted or changed files can be restored. "
        "It uses space only for what has changed since, and it is no backup, because it is on the same disks.",
        "previous versions",
    ),
    "schedule": Term(
        "Snapshot schedule",
        "A snapshot schedule takes snapshots of a folder every 15 minutes, hour, day, week or month. "
        "Folders inside it follow the same schedule unless they have their own.",
        "automatic",
    ),
    "retention": Term(
        "Retention",
        "Retention is how many automatic snapshots of each kind are kept, such as 24 hourly and 30 daily ones. "
        "The oldest is destroyed when there are more; snapshots that you took yourself stay.",
        "keep",
    ),
    "scrub": Term(
        "Scrub",
        "A scrub reads every block in the pool and compares it with its checksum. "
        "If the pool has redundancy, damaged blocks are repaired from the other disks; files stay available.",
        "check verify",
    ),
    "rebuild": Term(
        "Rebuild",
        "A rebuild writes to a new disk what the failed one held, using the other disks of the pool. "
        "Files stay available, but until it has finished the pool survives fewer failed disks.",
        "resilver",
    ),
    "bay": Term(
        "Bay",
        "A bay is the place in the box that a disk is in. Its label tells you which disk to pull out when one fails.",
        "slot chassis",
    ),
    "raidz": Term(
        "RAID-Z",
        "RAID-Z spreads files over all its disks together with extra data that replaces a lost disk. "
        "RAID-Z1 survives one failed disk, RAID-Z2 two and RAID-Z3 three.",
        "raid parity raidz1 raidz2 raidz3",
    ),
    "mirror": Term(
        "Mirror",
        "A mirror keeps the same data on each of its disks and works as long as one of them does. "
        "It is fast and easy to extend, but it holds only as much as one of its disks.",
        "raid1",
    ),
    "checkpoint": Term(
        "Checkpoint",
        "A checkpoint remembers the state of a whole pool, so that you can go back to it after a risky change. "
        "Going back loses everything written since, and while the checkpoint exists deleting files frees no space.",
        "rewind",
    ),
    "hold": Term(
        "Protect from deletion",
        "A protected snapshot cannot be destroyed, neither by you nor by a schedule, until its protection is removed. "
        "ZFS calls this a hold.",
        "hold release",
    ),
    "quota": Term(
        "Limit",
        "A limit, which ZFS calls a quota, is the most space that a folder or a user may use. "
        "When it is reached, nothing more can be written there until something is deleted or the limit is raised.",
        "quota",
    ),
    "smb": Term(
        "SMB",
        "SMB lets Windows, Macs, phones and televisions open a folder over the network. "
        "If you are not sure which kind of share to use, use this one.",
        "samba windows share cifs",
    ),
    "nfs": Term(
        "NFS",
        "NFS lets Linux computers and media players open a folder over the network. "
        "It asks for no password: every computer at the addresses you enter gets in.",
        "linux share",
    ),
    "afp": Term(
        "AFP",
        "AFP lets old Macs, from before OS X 10.9, open a folder and back up to it with Time Machine. "
        "For newer Macs use SMB.",
        "apple netatalk mac share",
    ),
    "spare": Term(
        "Spare",
        "A spare is a disk that waits in the box and takes the place of a disk that fails. "
        "The rebuild then begins at once, also while you are away.",
        "hot spare",
    ),
    "log": Term(
        "Log",
        "A log is a fast disk that stores writes at once when a program waits for them, as databases do. "
        "Copying files over SMB hardly uses it, so most pools at home need none.",
        "slog zil",
    ),
    "cache": Term(
        "Cache",
        "A cache is a fast disk that keeps a second copy of files that are read again and again. "
        "It needs memory for its index, and losing it loses no data.",
        "l2arc",
    ),
    "smart": Term(
        "S.M.A.R.T.",
        "S.M.A.R.T. is what a disk reports about its own condition, such as its temperature and unreadable sectors. "
        "Disks often warn before they fail, but some fail without any warning.",
        "smart health self-test",
    ),
}
