"""Kinds of alerts about pools and their space."""

from __future__ import annotations

from appliance.alerts.alert_kind import MINUTE, AlertKind
from appliance.message import Message
from appliance.pools import fullness

KINDS: tuple[AlertKind, ...] = (
    AlertKind(
        "pool.stopped",
        "critical",
        "pools",
        Message("A pool has stopped"),
        Message(
            "Too many of its disks do not answer, so its files cannot be reached. What is on the disks "
            "is not lost by this."
        ),
        Message("Look at cables and power first. Put missing disks back; the pool's page then offers to go on."),
        Message("What to do"),
        "pool",
        3,
        0,
    ),
    AlertKind(
        "pool.no-redundancy",
        "critical",
        "pools",
        Message("A pool cannot survive another failed disk"),
        Message("Your files are there. If one more disk fails, all or part of them is lost."),
        Message("Bring the missing disk back or replace it now."),
        Message("What to do"),
        "pool",
        2,
    ),
    AlertKind(
        "pool.degraded",
        "warning",
        "pools",
        Message("A pool has lost a disk"),
        Message("Your files are there, and the pool survives at least one more failed disk."),
        Message("Bring the missing disk back or replace it."),
        Message("What to do"),
        "pool",
        1,
    ),
    AlertKind(
        "pool.offline",
        "warning",
        "pools",
        Message("A pool runs without a disk that was taken offline"),
        Message("Somebody took the disk out of use. Until it is back, the pool survives fewer failed disks."),
        Message("When you have done what you wanted, bring it online again, or replace it."),
        Message("See the pool"),
        "pool",
        1,
    ),
    AlertKind(
        "pool.helper",
        "notice",
        "pools",
        Message("A spare or cache disk does not work"),
        Message("No file depends on it. But a spare that does not work cannot step in."),
        Message("Put it back, or take it out of the pool and add another."),
        Message("See the pool"),
    ),
    AlertKind(
        "pool.damaged",
        "critical",
        "pools",
        Message("Files are damaged"),
        Message("Some blocks could not be read from any disk. The pool's reports name the files after a scrub."),
        Message("Restore those files from a snapshot or another copy. Then scrub the pool again."),
        Message("See the pool"),
    ),
    AlertKind(
        "pool.errors",
        "warning",
        "pools",
        Message("A disk of a pool made errors"),
        Message(
            "ZFS noticed them and used the other disks instead. A few after a pulled cable or a power cut are harmless."
        ),
        Message(
            "If the disk is failing by its own figures, replace it. Otherwise clear the counts; if they "
            "come back on the same disk, look at its cable, then replace the disk."
        ),
        Message("See the pool"),
        # A disk that dies makes errors for a while, and is then told as the pool's loss.
        wait=MINUTE,
    ),
    AlertKind(
        "pool.stalls",
        "warning",
        "pools",
        Message("A disk of a pool was very slow to answer"),
        Message(
            "ZFS counted requests that took the disk more than 30 seconds. Disks do that when they try "
            "again and again to read a bad sector."
        ),
        Message(
            "Look at its figures and its cable. If it is failing, or more come, replace it. Otherwise "
            "clear the counts when you have looked."
        ),
        Message("See the pool"),
    ),
    AlertKind(
        "scan.errors",
        "warning",
        "pools",
        Message("A scrub or rebuild ended with errors"),
        Message("Some blocks could not be read or repaired when ZFS went through the pool."),
        Message("Scrub the pool again. Its reports say what was found."),
        Message("See the reports"),
        settle=0,
    ),
    AlertKind(
        "pool.rebuilt",
        "notice",
        "pools",
        Message("A pool was rebuilt"),
        Message("The new or returned disk has all its data again."),
        Message("Nothing. Its report says how long it took."),
        Message("See the reports"),
        settle=0,
        news=True,
    ),
    AlertKind(
        "pool.repaired",
        "notice",
        "pools",
        Message("A pool repaired itself"),
        Message("A scrub found damaged blocks and rewrote them from the other disks. Nothing was lost."),
        Message("Nothing now. If it happens again on the same disk, that disk is wearing out."),
        Message("See the reports"),
        settle=0,
        news=True,
    ),
    AlertKind(
        "pool.missing",
        "critical",
        "pools",
        Message("A pool is missing"),
        Message("It was there before and was neither exported nor destroyed here."),
        Message("Check that all its disks are in the box, then look for it under “Import a pool”."),
        Message("Look for it"),
        wait=2 * MINUTE,
    ),
    AlertKind(
        "pool.full96",
        "critical",
        "datasets",
        Message("A pool is full or almost out of space"),
        Message(
            "It is at least {critical} % full. A pool this full is very slow, and programs that write to it soon fail.",
            critical=fullness.CRITICAL,
        ),
        Message("Free space now: delete what is not needed, or old snapshots, or add disks."),
        Message("See the pool"),
        "space",
        3,
    ),
    AlertKind(
        "pool.full90",
        "warning",
        "datasets",
        Message("A pool is nearly full"),
        Message("It is at least {warning} % full. A pool this full becomes slow.", warning=fullness.WARNING),
        Message("Free space or add disks."),
        Message("See the pool"),
        "space",
        2,
    ),
    AlertKind(
        "pool.full80",
        "notice",
        "datasets",
        Message("A pool is filling up"),
        Message(
            "It is at least {notice} % full. There is room left. From {warning} % on a pool becomes slow.",
            notice=fullness.NOTICE,
            warning=fullness.WARNING,
        ),
        Message("Plan for more space, or delete what is not needed."),
        Message("Ways to get more room"),
        "space",
        1,
    ),
    AlertKind(
        "pool.filling",
        "warning",
        "datasets",
        Message("A pool fills up fast"),
        Message(
            "At the pace of the last weeks it will be {warning} % full within two weeks. A pool that "
            "full becomes slow.",
            warning=fullness.WARNING,
        ),
        Message("See what grows. Free space, or plan for more disks now."),
        Message("Ways to get more room"),
    ),
    AlertKind(
        "growth.standing",
        "notice",
        "pools",
        Message("A plan to grow a pool has stalled"),
        Message(
            "Disks of the pool were to be replaced by larger ones, one after the other. The pool gains "
            "no room until the last one is replaced."
        ),
        Message("Replace the next disk, or end the plan."),
        Message("See the plan"),
        settle=0,
    ),
    AlertKind(
        "zfs.faulty",
        "warning",
        "",
        Message("This version of ZFS is known to damage files"),
        Message("Newer versions have this fixed. What was read wrongly is mostly right on the disks."),
        Message("Update the system (sudo apt update && sudo apt full-upgrade), then restart it."),
        Message("See the alert"),
    ),
)
