"""The terms that a home user may not know, each in two sentences: for the help beside a
heading and the page of help."""

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
    "subfolder": Term(
        lazy_text("Subfolder"),
        lazy_text(
            "A subfolder is an ordinary directory inside a folder, made on the computer that uses the share. "
            "It has no shares, snapshots or limits of its own: those of its folder hold for everything in it."
        ),
        lazy_text("directory"),
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
    "disk": Term(
        lazy_text("Disk"),
        lazy_text(
            "A disk keeps the bytes: a hard disk on spinning platters, a solid-state disk (SSD) in memory chips. "
            "Its label states the size in units of 1000, so a disk of 4 TB shows as 3.6 TiB in units of 1024."
        ),
        lazy_text("hard drive HDD SSD TB TiB"),
    ),
    "bay": Term(
        lazy_text("Bay"),
        lazy_text(
            "A bay is the place in the box that a disk is in. Its label tells you which disk to pull out "
            "when one fails."
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
            "A protected snapshot cannot be destroyed, neither by you nor by a schedule, until its "
            "protection is removed. "
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
            "S.M.A.R.T. is what a disk reports about its own condition, such as its temperature and "
            "unreadable sectors. "
            "Disks often warn before they fail, but some fail without any warning."
        ),
        lazy_text("smart health self-test"),
    ),
    "share": Term(
        lazy_text("Share"),
        lazy_text(
            "A share opens a folder to other computers over the network. "
            "One folder can be shared in several ways at once, and when a share is stopped its files stay "
            "where they are."
        ),
        lazy_text("samba nfs afp network"),
    ),
    "user": Term(
        lazy_text("User"),
        lazy_text(
            "A user has a name and a password for opening shared folders from another computer. "
            "A user cannot open these pages: only the administrator signs in here."
        ),
        lazy_text("login name password"),
    ),
    "job": Term(
        lazy_text("Job"),
        lazy_text(
            "A job is a change that you or a schedule asked for, with its steps and how it ended. "
            "It goes on when you close the page."
        ),
        lazy_text("task change operation"),
    ),
    "alert": Term(
        lazy_text("Alert"),
        lazy_text(
            "An alert says what is wrong with the box, a pool or a disk, and leads to what to do about it. "
            "It closes automatically when the fault is over."
        ),
        lazy_text("warning fault"),
    ),
    "notification": Term(
        lazy_text("Notification"),
        lazy_text(
            "A notification sends alerts to you, for example by mail. "
            "Without one you hear of a failing disk only when you open these pages."
        ),
        lazy_text("mail message webhook"),
    ),
    "backup": Term(
        lazy_text("Backup"),
        lazy_text(
            "A backup keeps a second copy of a folder in another pool, on a USB disk or on another computer. "
            "It is there when a pool fails or the box is stolen, and snapshots are not."
        ),
        lazy_text("copy replica replication"),
    ),
    "volume": Term(
        lazy_text("Volume"),
        lazy_text(
            "A volume is a part of a pool that a virtual machine or another computer uses as a disk of its own. "
            "That computer formats it, so its files cannot be seen on this box."
        ),
        lazy_text("zvol block device"),
    ),
    "iscsi": Term(
        "iSCSI",
        lazy_text(
            "iSCSI lets another computer use a volume over the network as if it were a disk inside it. "
            "Only one computer may use it at a time, or its files are damaged."
        ),
        lazy_text("target initiator lun"),
    ),
    "chap": Term(
        "CHAP",
        lazy_text(
            "CHAP is the name and the secret by which another computer proves that it may use the disk. "
            "It does not encrypt what is sent, so use it only in a network that you trust."
        ),
        lazy_text("secret password iscsi"),
    ),
    "mtu": Term(
        "MTU",
        lazy_text(
            "The MTU is the largest number of bytes in one packet on the network. "
            "A larger one can be faster, but only if every device between both computers is set to it."
        ),
        lazy_text("jumbo frames packet"),
    ),
    "trim": Term(
        "TRIM",
        lazy_text(
            "Trimming tells solid-state disks which of their space is free, so that they stay fast. "
            "It deletes no files, and ordinary hard disks do not need it."
        ),
        lazy_text("discard ssd"),
    ),
    "stripe": Term(
        lazy_text("Stripe"),
        lazy_text(
            "A stripe spreads files over its disks without redundancy, so all their space is usable. "
            "If one of them fails, everything in the pool is lost."
        ),
        lazy_text("raid0"),
    ),
    "clone": Term(
        lazy_text("Clone"),
        lazy_text(
            "A clone is a folder made from a snapshot, and uses space only for what differs from it. "
            "The snapshot cannot be destroyed before the clone, unless you make the clone independent."
        ),
        lazy_text("copy"),
    ),
    "key": Term(
        lazy_text("Key"),
        lazy_text(
            "The key, a passphrase or a file, opens an encrypted folder. "
            "Without it nobody can read what is in the folder, so keep a copy of it outside the box."
        ),
        lazy_text("passphrase encryption unlock"),
    ),
    "phrase": Term(
        lazy_text("Recovery phrase"),
        lazy_text(
            "A recovery phrase opens the passwords and keys in the records that the box writes to its pools "
            "and backups. "
            "Write it on paper and keep that outside the house: without it a new box gets the files back, "
            "but neither the passwords of users nor the keys of folders."
        ),
        lazy_text("paper words disaster"),
    ),
    "selftest": Term(
        lazy_text("Self-test"),
        lazy_text(
            "A disk checks itself: a short self-test takes minutes, a long one reads every sector and takes hours. "
            "The disk can be used meanwhile, and one that fails its test should be replaced."
        ),
        lazy_text("smart long short"),
    ),
    "burnin": Term(
        lazy_text("Burn-in"),
        lazy_text(
            "A burn-in tries a disk for hours or days before you trust it: self-tests, then every sector "
            "written and read back. "
            "It erases the disk, so it is done before the disk joins a pool."
        ),
        lazy_text("test new disk badblocks"),
    ),
}
