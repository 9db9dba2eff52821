"""The kinds of alerts: a stable code, a default severity, what the alert means and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from appliance.pools import fullness

Severity = Literal["critical", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "notice")
MINUTE, HOUR = 60, 3600


@dataclass(frozen=True)
class AlertKind:
    """One kind of alert.

    ``source`` must be readable before an alert of the kind may clear. ``settle``: seconds that a fault must be gone before
    its alert clears, so that a fault that flaps stays one alert. ``wait``: seconds that it must last before it becomes an
    alert. Of one ``group`` and subject only the highest ``rank`` is open. ``news``: it reports something that has happened,
    so nobody is notified that it is over.
    """

    code: str
    severity: Severity
    source: str
    name: str
    meaning: str
    todo: str
    button: str
    group: str = ""
    rank: int = 0
    settle: int = MINUTE
    wait: int = 0
    news: bool = False


KINDS = {
    kind.code: kind
    for kind in (
        AlertKind("disk.failing", "critical", "temperatures", "A disk is failing",
             "Disks with this seldom last. It may work for months or stop tonight.",
             "See that your pool survives its loss, then take it out of use and test it, or replace it. Do not wait for it to stop.",
             "What to do", "disk", 2, 10 * MINUTE),
        AlertKind("disk.watch", "warning", "temperatures", "A disk needs attention",
             "It works. Most disks that failed showed something like this before, and many that show it go on for years.",
             "Look at the figures. Accept them if they do not grow: you hear of it again when they do. If they grow, replace the disk.",
             "See the disk", "disk", 1, 10 * MINUTE),
        AlertKind("disk.warm", "warning", "temperatures", "A disk is too warm",
             "Heat shortens a disk's life.",
             "See that air can pass through the box, that its fan turns, and that dust has not closed it.",
             "See the disk", settle=15 * MINUTE),
        AlertKind("disk.slow", "warning", "latency", "A disk is much slower than those beside it",
             "A pool is as fast as its slowest disk, and a disk often becomes slow before it fails.",
             "Look at its figures and at its cable. If it stays slow, replace it.",
             "See the disk", settle=30 * MINUTE, wait=10 * MINUTE),
        AlertKind("disk.silent", "warning", "temperatures", "A disk has stopped reporting its health",
             "It reported before. A disk that hangs answers nothing, and some cables and cases do not pass its answers on.",
             "See whether its pool still uses it without errors. Look at its cable and power; if it stays silent, replace it.",
             "See the disk", settle=0, wait=11 * MINUTE),
        AlertKind("backup.old", "warning", "datasets", "A backup is too old",
             "If the disks of this box failed now, everything since the newest copy would be lost.",
             "Connect the disks of the copies, and look at the last run of the backup.",
             "See the backup", settle=0),
        AlertKind("backup.differs", "critical", "datasets", "A backup differs from the original",
             "Files in the newest copy are not what they are in the folder. One of the two may be damaged.",
             "Look at the files that are named, on both sides. Scrub both pools. Keep older snapshots until you know which side is right.",
             "See the backup", settle=0),
        AlertKind("pool.stopped", "critical", "pools", "A pool has stopped",
             "Too many of its disks do not answer, so its files cannot be reached. What is on the disks is not lost by this.",
             "Look at cables and power first. Put missing disks back; the pool's page then offers to go on.",
             "What to do", "pool", 3, 0),
        AlertKind("pool.bare", "critical", "pools", "A pool survives no further failure",
             "Your files are there. If one more disk fails, all or part of them is lost.",
             "Bring the missing disk back or replace it now.",
             "What to do", "pool", 2),
        AlertKind("pool.weakened", "warning", "pools", "A pool has lost a disk",
             "Your files are there, and the pool survives at least one more failed disk.",
             "Bring the missing disk back or replace it.",
             "What to do", "pool", 1),
        AlertKind("pool.offline", "warning", "pools", "A pool runs without a disk that was taken offline",
             "Somebody took the disk out of use. Until it is back, the pool survives fewer failed disks.",
             "When you have done what you wanted, bring it online again, or replace it.",
             "See the pool", "pool", 1),
        AlertKind("pool.helper", "notice", "pools", "A spare or cache disk does not work",
             "No file depends on it. But a spare that does not work cannot step in.",
             "Put it back, or take it out of the pool and add another.",
             "See the pool"),
        AlertKind("pool.damaged", "critical", "pools", "Files are damaged",
             "Some blocks could not be read from any disk. The pool's reports name the files after a scrub.",
             "Restore those files from a snapshot or another copy. Then scrub the pool again.",
             "See the pool"),
        AlertKind("pool.errors", "warning", "pools", "A disk of a pool made errors",
             "ZFS noticed them and used the other disks instead. A few after a pulled cable or a power cut are harmless.",
             "If the disk is failing by its own figures, replace it. Otherwise clear the counts; if they come back on the same disk, look at its cable, then replace the disk.",
             "See the pool", wait=MINUTE),  # a disk that dies makes errors for a while, and is then told as the pool's loss
        AlertKind("pool.stalls", "warning", "pools", "A disk of a pool was very slow to answer",
             "It took more than 30 seconds for single requests, as ZFS counts. Disks do that when they try again and again to read a bad place.",
             "Look at its figures and its cable. If it is failing, or more come, replace it. Otherwise clear the counts when you have looked.",
             "See the pool"),
        AlertKind("scan.errors", "warning", "pools", "A scrub or rebuild ended with errors",
             "Some blocks could not be read or repaired when ZFS went through the pool.",
             "Scrub the pool again. Its reports say what was found.",
             "See the reports", settle=0),
        AlertKind("pool.rebuilt", "notice", "pools", "A pool was rebuilt",
             "The new or returned disk has all its data again.",
             "Nothing. Its report says how long it took.",
             "See the reports", settle=0, news=True),
        AlertKind("pool.repaired", "notice", "pools", "A pool repaired itself",
             "A scrub found damaged blocks and rewrote them from the other disks. Nothing was lost.",
             "Nothing now. If it happens again on the same disk, that disk is wearing out.",
             "See the reports", settle=0, news=True),
        AlertKind("pool.missing", "critical", "pools", "A pool is not there",
             "It was there before and was neither exported nor destroyed here.",
             "See that all its disks are in the box, then look for it under “Import a pool”.",
             "Look for it", wait=2 * MINUTE),
        AlertKind("pool.full96", "critical", "datasets", "A pool is full or almost out of space",
             f"It is at least {fullness.CRITICAL} % full. A pool this full is very slow, and programs that write to it soon fail.",
             "Free space now: delete what is not needed, or old snapshots, or add disks.",
             "See the pool", "space", 3),
        AlertKind("pool.full90", "warning", "datasets", "A pool is nearly full",
             f"It is at least {fullness.WARNING} % full. A pool this full becomes slow.",
             "Free space or add disks.",
             "See the pool", "space", 2),
        AlertKind("pool.full80", "notice", "datasets", "A pool is filling up",
             f"It is at least {fullness.NOTICE} % full. There is room left. From {fullness.WARNING} % on a pool becomes slow.",
             "Plan for more space, or delete what is not needed.",
             "Ways to more room", "space", 1),
        AlertKind("pool.filling", "warning", "datasets", "A pool fills up fast",
             f"At the pace of the last weeks it will be {fullness.WARNING} % full within two weeks. A pool that full becomes slow.",
             "See what grows. Free space, or plan for more disks now.",
             "Ways to more room"),
        AlertKind("growth.standing", "notice", "pools", "A plan to grow a pool stands still",
             "Disks of the pool were to be replaced by larger ones, one after the other. Until the last one is, the pool has no more room.",
             "Replace the next disk, or end the plan.",
             "See the plan", settle=0),
        AlertKind("zfs.faulty", "warning", "", "This version of ZFS is known to spoil files",
             "Newer versions have this fixed. What was read wrongly is mostly right on the disks.",
             "Update the system (sudo apt update && sudo apt full-upgrade), then restart it.",
             "See the alert"),
        AlertKind("test.overdue", "warning", "temperatures", "A self-test is overdue",
             "Self-tests find bad places before files are there. The last ones did not begin, or were stopped before their end.",
             "Start a long test from the disk's health page, and let the box run through a night.",
             "See the disk", settle=0),
        AlertKind("scrub.overdue", "warning", "pools", "A scrub is overdue",
             "A scrub finds damaged blocks before a second disk fails. This one should have been done by now.",
             "Start it, or change its schedule.",
             "See the pool"),
        AlertKind("policy.overdue", "warning", "snapshots", "Snapshots were not taken",
             "Folders with a snapshot schedule should have had one by now. Without it, what is deleted or changed by mistake meanwhile cannot be brought back.",
             "See why the last try failed: it is among the jobs. Larder keeps trying.",
             "See the jobs", wait=10 * MINUTE),
        AlertKind("clock.doubted", "warning", "snapshots", "The clock may be wrong",
             "At the last start the clock was earlier than before, or later by more than a month. Until it is right, snapshots go on by how long the box has been running, and their dates are wrong.",
             "Connect the box to the internet, which sets the clock. If it is wrong after each start, the battery on the main board is empty. To set or confirm it by hand: sudo timedatectl set-time '2026-11-22 18:30'",
             "See the alert", wait=10 * MINUTE),
        AlertKind("clock.unset", "notice", "snapshots", "The clock is not set from the network",
             "The clock of a box drifts by seconds a day. Schedules keep to it, and the dates of files and snapshots come from it.",
             "See on the System page which time servers the box asks and whether one answers. Without internet, choose your router if it tells the time.",
             "See the system"),
        AlertKind("service.smartd", "warning", "services", "Disks are not monitored",
             "The service that watches the disks (smartd) does not run. Larder still reads their health every few minutes, but the second check is missing.",
             "Restart the box. If it stays, the system's journal says why: journalctl -u smartmontools",
             "See the alert", settle=2 * MINUTE, wait=MINUTE),
        AlertKind("service.zed", "warning", "services", "Events of ZFS do not arrive",
             "The service that reports ZFS events (ZED) does not run. Spares do not step in automatically, and Larder notices faults up to a minute later.",
             "Restart the box. If it stays, the system's journal says why: journalctl -u zfs-zed",
             "See the alert", settle=2 * MINUTE, wait=MINUTE),
        AlertKind("hook.missing", "warning", "hook", "Larder's hook for events is missing",
             "The service runs but does not report to Larder. Faults are then noticed some minutes later.",
             "Install Larder again: sudo make install",
             "See the alert"),
        AlertKind("source.stopped", "warning", "", "Part of Larder fails",
             "What pages say of it is old, a fault in it would not be seen, and what depends on it does not happen. Everything else goes on.",
             "If a disk hangs, replace it. Otherwise restart the box. If it stays, the system's journal says why: journalctl -u larder-worker",
             "See the alert", settle=2 * MINUTE, wait=5 * MINUTE),
        AlertKind("settings.restored", "warning", "", "The settings were restored from a copy",
             "The database with Larder's settings was damaged, and the newest good copy of it is used now. Pools, folders and files are not affected.",
             "Check notifications, schedules and recent changes. A system disk that damages files often fails soon: look at its health.",
             "See the alert", settle=0, news=True),
        AlertKind("settings.lost", "critical", "", "The settings were lost",
             "The database with Larder's settings was damaged and there was no good copy. Pools, folders and files are not affected.",
             "Set up notifications and schedules again. A system disk that damages files often fails soon: look at its health.",
             "See the alert", settle=0, news=True),
        AlertKind("upkeep.failed", "warning", "", "Larder's own upkeep failed",
             "Each day Larder copies its settings and removes old entries from them. Without a copy, settings are lost when the system disk damages them; without removal, the system disk fills.",
             "Free space on the system disk. If the message speaks of a malformed or damaged database, restart the box: Larder then restores the newest copy.",
             "See the alert", settle=0),
        AlertKind("system.full", "warning", "", "The system disk is nearly full",
             "When it is full, Larder cannot store settings, jobs or alerts, and the box may not start again. Your pools are not touched by this.",
             "Free space on it. Logs and old packages take the most: sudo journalctl --vacuum-size=100M, sudo apt clean",
             "See the alert", settle=2 * MINUTE),
        AlertKind("system.readonly", "critical", "", "The system disk takes no writes",
             "Linux stops writing to a disk that makes errors. Larder cannot store settings, jobs or alerts, and no job can run. Your pools are not touched by this.",
             "Save Larder's settings if you can, then replace the system disk and install Larder again. Your pools can be imported there.",
             "See the alert", settle=2 * MINUTE),
        AlertKind("records.failing", "critical", "", "Larder cannot use its database",
             "Jobs do not start, and alerts may be missing from the page of alerts. Critical alerts are sent by mail once. Your pools and shares go on working.",
             "See whether the system disk is full (df -h) or takes no writes. The system's journal says more: journalctl -u larder-worker",
             "See the alert", settle=2 * MINUTE, wait=MINUTE),
        AlertKind("worker.restarted", "warning", "", "Larder's background worker hung",
             "It reads the system, starts jobs and sends mail. While it hung, none of that happened. It works again.",
             "Once is no reason to act. If it comes again, a disk or pool may not answer: look at the other alerts, then restart the box.",
             "See the alert", settle=0, news=True),
        AlertKind("job.waiting", "critical", "", "A job that destroys waits for its start",
             "It was asked for without the administrator's password, so it was not begun at once.",
             "If you did not ask for it, cancel it now, here or at the console (sudo larder-jobs cancel), then unplug the box from the network: somebody else may have entered it.",
             "See the job", settle=0, news=True),
        AlertKind("mail.failing", "warning", "", "Mail cannot be sent",
             "Alerts wait and are tried again for three days. Until it works, this page is the only place that shows alerts.",
             "Look at the mail settings and send a test.",
             "Mail settings"),
    )
}  # fmt: skip
