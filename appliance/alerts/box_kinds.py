"""Kinds of alerts about what runs on the box: schedules, services, clock, network, system disk."""

from __future__ import annotations

from appliance.alerts.alert_kind import MINUTE, AlertKind
from appliance.message import Message

KINDS: tuple[AlertKind, ...] = (
    AlertKind(
        "test.overdue",
        "warning",
        "temperatures",
        Message("A self-test is overdue"),
        Message(
            "Self-tests find bad places before files are there. The last ones did not begin, or were "
            "stopped before their end."
        ),
        Message("Start a long test from the disk's health page, and let the box run through a night."),
        Message("See the disk"),
        settle=0,
    ),
    AlertKind(
        "scrub.overdue",
        "warning",
        "pools",
        Message("A scrub is overdue"),
        Message("A scrub finds damaged blocks before a second disk fails. This one should have been done by now."),
        Message("Start it, or change its schedule."),
        Message("See the pool"),
    ),
    AlertKind(
        "policy.overdue",
        "warning",
        "snapshots",
        Message("Snapshots were not taken"),
        Message(
            "Folders with a snapshot schedule should have a new snapshot by now. Without it, files that "
            "are deleted or changed by mistake cannot be restored."
        ),
        Message("Under Jobs, the last attempt says why it failed. Larder keeps trying."),
        Message("See the jobs"),
        wait=10 * MINUTE,
    ),
    AlertKind(
        "policy.unrecorded",
        "notice",
        "snapshots",
        Message("A schedule leaves snapshots alone"),
        Message(
            "A schedule deletes only snapshots that this box has a record of. The others stay and use "
            "space until somebody decides."
        ),
        Message(
            "Open the snapshots of the folder. Let its schedule delete them when they are due, or "
            "destroy those that you do not need."
        ),
        Message("See the schedules"),
        wait=10 * MINUTE,
    ),
    AlertKind(
        "clock.doubted",
        "warning",
        "snapshots",
        Message("The clock may be wrong"),
        Message(
            "When the box last started, its clock was earlier than before, or more than a month later. "
            "Until it is right, snapshots are timed by how long the box has been running, and their "
            "dates are wrong."
        ),
        Message(
            "Connect the box to the internet, which sets the clock. If it is wrong after each start, the "
            "battery on the main board is empty. To set or confirm it by hand: sudo timedatectl set-time "
            "'2026-11-22 18:30'"
        ),
        Message("See the alert"),
        wait=10 * MINUTE,
    ),
    AlertKind(
        "clock.unset",
        "notice",
        "snapshots",
        Message("The clock is not set from the network"),
        Message(
            "The clock of a box drifts by seconds a day. Schedules keep to it, and the dates of files "
            "and snapshots come from it."
        ),
        Message(
            "See on the System page which time servers the box asks and whether one answers. Without "
            "internet, use your router, if it is a time server."
        ),
        Message("See the system"),
    ),
    AlertKind(
        "service.smartd",
        "warning",
        "services",
        Message("Disks are not monitored"),
        Message(
            "The service that watches the disks (smartd) does not run. Larder still reads their health "
            "every few minutes, but the second check is missing."
        ),
        Message("Restart the box. If that does not help, the system's journal says why: journalctl -u smartmontools"),
        Message("See the alert"),
        settle=2 * MINUTE,
        wait=MINUTE,
    ),
    AlertKind(
        "service.zed",
        "warning",
        "services",
        Message("Events of ZFS do not arrive"),
        Message(
            "The service that reports ZFS events (ZED) does not run. Spares do not step in "
            "automatically, and Larder notices faults up to a minute later."
        ),
        Message("Restart the box. If that does not help, the system's journal says why: journalctl -u zfs-zed"),
        Message("See the alert"),
        settle=2 * MINUTE,
        wait=MINUTE,
    ),
    AlertKind(
        "service.shares",
        "critical",
        "services",
        Message("Shares cannot be reached"),
        Message("The service that gives folders to other computers does not run. The files are safe in their pools."),
        Message(
            "Restart the box. If that does not help, the system's journal says why: journalctl -u smbd "
            "-u nfs-server -u netatalk"
        ),
        Message("See the folders"),
        settle=2 * MINUTE,
        wait=2 * MINUTE,
    ),
    AlertKind(
        "service.pages",
        "critical",
        "services",
        Message("Larder's pages cannot be reached"),
        Message("The web server (nginx) does not run. Pools, shares, schedules and alerts by mail go on."),
        Message("Restart the box. If that does not help, the system's journal says why: journalctl -u nginx"),
        Message("See the alert"),
        settle=2 * MINUTE,
        wait=2 * MINUTE,
    ),
    AlertKind(
        "hook.missing",
        "warning",
        "hook",
        Message("Larder's hook for events is missing"),
        Message("The service runs but does not report to Larder. Faults are then noticed some minutes later."),
        Message("Install Larder again: sudo make install"),
        Message("See the alert"),
    ),
    AlertKind(
        "source.stopped",
        "warning",
        "",
        Message("Part of Larder fails"),
        Message(
            "Its figures are out of date, new faults would go unnoticed, and jobs that need it do not "
            "run. Everything else keeps running."
        ),
        Message(
            "If a disk hangs, replace it. Otherwise restart the box. If that does not help, the system's "
            "journal says why: journalctl -u larder-worker"
        ),
        Message("See the alert"),
        settle=2 * MINUTE,
        wait=5 * MINUTE,
    ),
    AlertKind(
        "settings.restored",
        "warning",
        "",
        Message("The settings were restored from a copy"),
        Message(
            "The database with Larder's settings was damaged, and the newest good copy of it is used "
            "now. Pools, folders and files are not affected."
        ),
        Message(
            "Check notifications, schedules and recent changes. A system disk that damages files often "
            "fails soon: look at its health."
        ),
        Message("See the alert"),
        settle=0,
        news=True,
    ),
    AlertKind(
        "settings.lost",
        "critical",
        "",
        Message("The settings were lost"),
        Message(
            "The database with Larder's settings was damaged and there was no good copy. Pools, folders "
            "and files are not affected."
        ),
        Message(
            "If a pool has the settings, bring them back on the page Recovery. Otherwise set up "
            "notifications and schedules again. A system disk that damages files often fails soon: look "
            "at its health."
        ),
        Message("See the alert"),
        settle=0,
        news=True,
    ),
    AlertKind(
        "upkeep.failed",
        "warning",
        "",
        Message("Larder's own upkeep failed"),
        Message(
            "Each day Larder copies its settings and removes old entries from them. Without a copy, "
            "settings are lost when the system disk damages them; without removal, the system disk fills."
        ),
        Message(
            "Free space on the system disk. If the message speaks of a malformed or damaged database, "
            "restart the box: Larder then restores the newest copy. If it speaks of earlier settings, "
            "open Recovery and choose which to keep."
        ),
        Message("See the alert"),
        settle=0,
    ),
    AlertKind(
        "system.full",
        "warning",
        "",
        Message("The system disk is nearly full"),
        Message(
            "When it is full, Larder cannot store settings, jobs or alerts, and the box may not start "
            "again. Your pools are not touched by this."
        ),
        Message(
            "Free space on it. Logs and old packages take the most: sudo journalctl --vacuum-size=100M, sudo apt clean"
        ),
        Message("See the alert"),
        settle=2 * MINUTE,
    ),
    AlertKind(
        "system.readonly",
        "critical",
        "",
        Message("The system disk cannot be written to"),
        Message(
            "Linux stops writing to a disk that makes errors. Larder cannot store settings, jobs or "
            "alerts, and no job can run. Your pools are not touched by this."
        ),
        Message(
            "Save Larder's settings if you can, then replace the system disk and install Larder again. "
            "Your pools can be imported there."
        ),
        Message("See the alert"),
        settle=2 * MINUTE,
    ),
    AlertKind(
        "port.half-duplex",
        "warning",
        "",
        Message("A network port runs at half duplex"),
        Message(
            "Only one side can send at a time, and frames collide. Copies are many times slower than "
            "they should be, and connections break."
        ),
        Message(
            "Set the port of the switch to negotiate by itself, and plug the cable in again at both "
            "ends. If that does not help, try another cable, then another port of the switch."
        ),
        Message("See the network"),
        "port",
        2,
        settle=5 * MINUTE,
        wait=10 * MINUTE,
    ),
    AlertKind(
        "port.slow",
        "warning",
        "",
        Message("A network port is slower than it can be"),
        Message(
            "Copies over the network take longer than they need to. Most often one pair of wires in the "
            "cable is broken, or a plug does not sit well."
        ),
        Message(
            "Plug the cable in again at both ends, then try another cable (Cat 5e or better) and another "
            "port of the switch. If the switch or router can do no more, accept this alert."
        ),
        Message("See the network"),
        "port",
        1,
        settle=5 * MINUTE,
        wait=10 * MINUTE,
    ),
    AlertKind(
        "port.losses",
        "warning",
        "",
        Message("A network port loses data"),
        Message(
            "Lost data is sent again, so files are correct, but copying is slow and connections may "
            "break. Damaged frames come from the cable, a plug or the port; dropped ones mostly from a "
            "box or switch that cannot keep up."
        ),
        Message(
            "Plug the cable in again at both ends, then try another cable and another port of the "
            "switch. If frames are only dropped, see whether something keeps the box very busy."
        ),
        Message("See the network"),
        settle=30 * MINUTE,
        wait=5 * MINUTE,
    ),
    AlertKind(
        "records.failing",
        "critical",
        "",
        Message("Larder cannot use its database"),
        Message(
            "Jobs do not start, and alerts may be missing from the page of alerts. Critical alerts are "
            "sent by mail once. Your pools and shares go on working."
        ),
        Message(
            "Check whether the system disk is full (df -h) or cannot be written to. The system's journal "
            "says more: journalctl -u larder-worker"
        ),
        Message("See the alert"),
        settle=2 * MINUTE,
        wait=MINUTE,
    ),
    AlertKind(
        "worker.restarted",
        "warning",
        "",
        Message("Larder's background worker hung"),
        Message(
            "It reads the system, starts jobs and sends mail. While it hung, none of that happened. It works again."
        ),
        Message(
            "Once is no cause for concern. If it happens again, a disk or pool may not be answering: "
            "look at the other alerts, then restart the box."
        ),
        Message("See the alert"),
        settle=0,
        news=True,
    ),
    AlertKind(
        "job.waiting",
        "critical",
        "",
        Message("A job that destroys data is waiting to start"),
        Message("It was asked for without the administrator's password, so it was not begun at once."),
        Message(
            "If you did not ask for it, cancel it now, here or at the console (sudo larder-jobs cancel), "
            "then unplug the box from the network: somebody else may have entered it."
        ),
        Message("See the job"),
        settle=0,
        news=True,
    ),
    AlertKind(
        "mail.failing",
        "warning",
        "",
        Message("Mail cannot be sent"),
        Message(
            "Alerts wait and are tried again for three days. Until it works, this page is the only place "
            "that shows alerts."
        ),
        Message("Look at the mail settings and send a test."),
        Message("Mail settings"),
    ),
)
