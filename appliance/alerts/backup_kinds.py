"""Kinds of alerts about backups and received copies."""

from __future__ import annotations

from appliance.alerts.alert_kind import HOUR, AlertKind
from appliance.message import Message

KINDS: tuple[AlertKind, ...] = (
    AlertKind(
        "backup.old",
        "warning",
        "datasets",
        Message("A backup is too old"),
        Message("If the disks of this box failed now, everything since the newest copy would be lost."),
        Message("Connect the disks of the copies, and look at the last run of the backup."),
        Message("See the backup"),
        settle=0,
    ),
    AlertKind(
        "backup.differs",
        "critical",
        "datasets",
        Message("A backup differs from the original"),
        Message("Files in the newest copy are not what they are in the folder. One of the two may be damaged."),
        Message(
            "Look at the files that are named, on both sides. Scrub both pools. Keep older snapshots "
            "until you know which side is right."
        ),
        Message("See the backup"),
        settle=0,
    ),
    AlertKind(
        "backup.drill",
        "critical",
        "datasets",
        Message("A backup does not restore what it should"),
        Message("A test restored the whole folder out of its newest copy, and files came back that differ."),
        Message(
            "Look at the files that are named, in the folder and in the copy, and scrub both pools. Keep "
            "older snapshots until you know which side is right."
        ),
        Message("See the backup"),
        settle=0,
    ),
    AlertKind(
        "backup.untested",
        "warning",
        "datasets",
        Message("A restore test could not run"),
        Message(
            "It was stopped by an error before anything was compared. Whether the backup can be restored "
            "is not known: the copy may be fine, or it may be impossible to read it."
        ),
        Message(
            "Look at the reason: the other computer may be off, or a pool full or damaged. Then test the restore again."
        ),
        Message("See the backup"),
        settle=HOUR,
    ),
    AlertKind(
        "backup.key",
        "critical",
        "datasets",
        Message("The key of a backup does not open it"),
        Message(
            "The copies are encrypted. If the disks of this box failed now, the key that it stores would "
            "not bring the files back."
        ),
        Message(
            "Check whether the stored key is the folder's own. Let the backup run again, which brings a "
            "changed key to the copy, then try the key again."
        ),
        Message("See the backup"),
        settle=0,
    ),
    AlertKind(
        "backup.received",
        "notice",
        "datasets",
        Message("An interrupted backup takes up space"),
        Message(
            "Part of a copy has arrived and is kept, so that the next run can continue from there. None "
            "has done so for a week."
        ),
        Message("Let the backup run, or discard what has arrived: the next run then sends it again."),
        Message("See the backup"),
        settle=0,
    ),
    AlertKind(
        "backup.host-key",
        "critical",
        "datasets",
        Message("A computer for backups shows another host key"),
        Message("It was reinstalled, or another computer answers in its place. Nothing is sent to it."),
        Message("Look at its page. Compare the new host key on that computer itself before you confirm it."),
        Message("See the computer"),
        settle=0,
    ),
    AlertKind(
        "received.silent",
        "warning",
        "snapshots",
        Message("Another Larder no longer sends copies"),
        Message(
            "Its owner relies on the copies that are stored here. What has changed there since the last "
            "one exists only there."
        ),
        Message("Check that the other box is on and can reach this one, then look at its Backups page."),
        Message("See its copies"),
        settle=0,
    ),
    AlertKind(
        "received.full",
        "warning",
        "datasets",
        Message("The limit of received copies is nearly reached"),
        Message("When it is reached, the other box can send no more copies."),
        Message("Keep fewer copies, or raise the limit on the folder's page."),
        Message("See its copies"),
        settle=0,
    ),
)
