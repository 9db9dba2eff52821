"""What runs in the background, by the name under which its last error is noted, in words for an alert."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceText:
    """``name`` names it in a sentence; ``failing`` is the headline of the alert when it fails."""

    name: str
    failing: str


def describe_reading(name: str) -> SourceText:
    return SourceText(name, f"The {name} cannot be read.")


SOURCES: dict[str, SourceText] = {
    # What collectors read.
    "zfs": SourceText("ZFS", "ZFS cannot be used."),
    "pools": describe_reading("pools"),
    "pools-before": describe_reading("pools"),
    "activities": describe_reading("progress of scrubs and rebuilds"),
    "properties": describe_reading("properties"),
    "datasets": describe_reading("datasets"),
    "snapshots": describe_reading("snapshots"),
    "disks": describe_reading("disks"),
    "bays": describe_reading("bays"),
    "services": describe_reading("services"),
    "shares": describe_reading("shares"),
    "accounts": describe_reading("accounts"),
    "groups": describe_reading("groups"),
    "edits": SourceText("manual changes", "Larder cannot see whether its files were changed by hand."),
    "smb-policy": describe_reading("SMB settings"),
    "addresses": describe_reading("addresses of the box"),
    "reports": SourceText("pool reports", "Reports of scrubs and rebuilds are not kept."),
    "alerts": SourceText("alert rules", "Some alerts cannot be judged."),
    "temperatures": describe_reading("temperatures"),
    "disk-alerts": SourceText("pages of failing disks", "Pages of failing disks are not renewed."),
    "sleep": SourceText("sleep timers of disks", "The sleep timers of disks cannot be set."),
    "latency": describe_reading("response times of disks"),
    "caching": describe_reading("caching figures of ZFS"),
    # Stages of the worker's clock.
    "tick-events": SourceText("events", "Events of ZFS and of the disks are not taken in."),
    "tick-jobs": SourceText("the start of jobs", "Jobs cannot be started."),
    "tick-facts": SourceText("the start of readings", "Pools and disks are not read regularly."),
    "tick-temperatures": SourceText("the start of SMART readings", "Disks are not asked for their health regularly."),
    "tick-alerts": SourceText("the start of alert rules", "Alerts are not judged regularly."),
    "tick-mail": SourceText("the start of mail", "Waiting notifications are not looked for."),
    "tick-sweeps": SourceText("benchmarks", "A benchmark cannot go on."),
    "tick-scrubs": SourceText("scheduled scrubs and trims", "Scheduled scrubs and trims do not start."),
    "tick-self-tests": SourceText("scheduled self-tests", "Scheduled self-tests do not start."),
    "tick-policies": SourceText("automatic snapshots", "Automatic snapshots are not taken."),
    "tick-housekeeping": SourceText("the start of the daily upkeep", "Settings are not copied, and old entries are not removed."),
    # Work that the clock starts beside itself.
    "run-facts": SourceText("the reading of pools and disks", "The reading of pools and disks breaks off."),
    "run-temperatures": SourceText("SMART readings", "Asking the disks for their health breaks off."),
    "run-alerts": SourceText("alert rules", "The alert rules break off."),
    "run-straight-mail": SourceText("sending critical mail", "Sending critical alerts by mail breaks off."),
    "run-housekeeping": SourceText("the daily upkeep", "The daily upkeep breaks off."),
    "run-mail": SourceText("sending mail", "Sending notifications breaks off."),
}  # fmt: skip


def source_text(name: str) -> SourceText:
    return SOURCES.get(name) or describe_reading(name)
