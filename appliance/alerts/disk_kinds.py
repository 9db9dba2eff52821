"""Kinds of alerts about disks."""

from __future__ import annotations

from appliance.alerts.alert_kind import MINUTE, AlertKind
from appliance.message import Message

KINDS: tuple[AlertKind, ...] = (
    AlertKind(
        "disk.failing",
        "critical",
        "temperatures",
        Message("A disk is failing"),
        Message("Disks that show this seldom last long. This one may work for months or stop tonight."),
        Message(
            "Check that your pool survives without it, then take it out of use and test it, or replace "
            "it. Do not wait for it to stop."
        ),
        Message("What to do"),
        "disk",
        2,
        10 * MINUTE,
    ),
    AlertKind(
        "disk.watch",
        "warning",
        "temperatures",
        Message("A disk needs attention"),
        Message(
            "It works. Most disks that failed showed something like this before, and many that show it go on for years."
        ),
        Message(
            "Look at the figures. Accept them if they do not grow: you hear of it again when they do. If "
            "they grow, replace the disk."
        ),
        Message("See the disk"),
        "disk",
        1,
        10 * MINUTE,
    ),
    AlertKind(
        "disk.warm",
        "warning",
        "temperatures",
        Message("A disk is too warm"),
        Message("Heat shortens a disk's life."),
        Message("Make sure that air can flow through the box, that its fan turns, and that dust does not block it."),
        Message("See the disk"),
        settle=15 * MINUTE,
    ),
    AlertKind(
        "disk.slow",
        "warning",
        "latency",
        Message("A disk is much slower than the others in its group"),
        Message("A pool is as fast as its slowest disk, and a disk often becomes slow before it fails."),
        Message("Look at its figures and at its cable. If it stays slow, replace it."),
        Message("See the disk"),
        settle=30 * MINUTE,
        wait=10 * MINUTE,
    ),
    AlertKind(
        "disk.silent",
        "warning",
        "temperatures",
        Message("A disk has stopped reporting its health"),
        Message(
            "It reported before. A disk that hangs answers nothing, and some cables and cases do not "
            "pass its answers on."
        ),
        Message(
            "See whether its pool still uses it without errors. Look at its cable and power; if it stays "
            "silent, replace it."
        ),
        Message("See the disk"),
        settle=0,
        wait=11 * MINUTE,
    ),
)
