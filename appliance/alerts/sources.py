"""Names of everything that runs in the background, as text for the alert when it fails."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.message import Message


@dataclass(frozen=True)
class SourceText:
    """``name`` is used within a sentence; ``failing`` is the headline of the alert."""

    name: str
    failing: str


def describe_reading(name: str) -> SourceText:
    return SourceText(name, Message("The {name} cannot be read.", name=name))


SOURCES: dict[str, SourceText] = {
    # Sources that the collectors read.
    "zfs": SourceText("ZFS", Message("ZFS cannot be used.")),
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
    "edits": SourceText("manual changes", Message("Larder cannot see whether its files were changed by hand.")),
    "smb-policy": describe_reading("SMB settings"),
    "remotes": describe_reading("other computers for backups"),
    "receivers": describe_reading("pairings with other boxes"),
    "imports": describe_reading("imports of files"),
    "addresses": describe_reading("addresses of the box"),
    "reports": SourceText("pool reports", Message("Reports of scrubs and rebuilds are not kept.")),
    "alerts": SourceText("alert rules", Message("Some alert rules cannot be evaluated.")),
    "temperatures": describe_reading("temperatures"),
    "disk-alerts": SourceText("pages of failing disks", Message("Pages of failing disks are not updated.")),
    "sleep": SourceText("sleep timers of disks", Message("The sleep timers of disks cannot be set.")),
    "latency": describe_reading("response times of disks"),
    "caching": describe_reading("caching figures of ZFS"),
    # Stages of the worker's clock.
    "tick-events": SourceText("events", Message("Events of ZFS and of disks are not processed.")),
    "tick-jobs": SourceText("the start of jobs", Message("Jobs cannot be started.")),
    "tick-facts": SourceText("the start of readings", Message("Pools and disks are not read regularly.")),
    "tick-temperatures": SourceText("the start of SMART readings", Message("The health of disks is not read regularly.")),
    "tick-alerts": SourceText("the start of alert rules", Message("Alert rules are not evaluated regularly.")),
    "tick-mail": SourceText("the start of mail", Message("Waiting notifications are not sent.")),
    "tick-sweeps": SourceText("benchmarks", Message("A benchmark cannot continue.")),
    "tick-burn-ins": SourceText("burn-ins of disks", Message("A burn-in cannot continue.")),
    "tick-scrubs": SourceText("scheduled scrubs and trims", Message("Scheduled scrubs and trims do not start.")),
    "tick-self-tests": SourceText("scheduled self-tests", Message("Scheduled self-tests do not start.")),
    "tick-backups": SourceText("backups", Message("Backups are not made.")),
    "tick-imports": SourceText("imports", Message("Interrupted imports of files do not go on.")),
    "tick-policies": SourceText("automatic snapshots", Message("Automatic snapshots are not taken.")),
    "tick-housekeeping": SourceText("the start of the daily upkeep", Message("Settings are not copied, and old entries are not removed.")),
    # Work that the clock starts in its own thread.
    "run-facts": SourceText("the reading of pools and disks", Message("Reading pools and disks fails.")),
    "run-burn-in-readings": SourceText("SMART readings of burn-ins", Message("Disks in burn-in cannot be read.")),
    "run-temperatures": SourceText("SMART readings", Message("Reading the health of disks fails.")),
    "run-alerts": SourceText("alert rules", Message("The alert rules fail.")),
    "run-straight-mail": SourceText("sending critical mail", Message("Sending critical alerts by mail fails.")),
    "run-housekeeping": SourceText("the daily upkeep", Message("The daily upkeep fails.")),
    "run-mail": SourceText("sending mail", Message("Sending notifications fails.")),
}  # fmt: skip


def source_text(name: str) -> SourceText:
    return SOURCES.get(name) or describe_reading(name)
