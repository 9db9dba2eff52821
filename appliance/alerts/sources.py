"""Names of everything that runs in the background, as text for the alert when it fails."""

from __future__ import annotations

import msgspec

from appliance.message import Message


class SourceText(msgspec.Struct, frozen=True):
    """``name`` is used within a sentence; ``failing`` is the headline of the alert."""

    name: str
    failing: str


def describe_reading(name: str) -> SourceText:
    return SourceText(name, Message("The {name} cannot be read.", name=name))


SOURCES: dict[str, SourceText] = {
    # Sources that the collectors read.
    "zfs": SourceText(Message("ZFS"), Message("ZFS cannot be used.")),
    "pools": describe_reading(Message("pools")),
    "pools-before": describe_reading(Message("pools")),
    "activities": describe_reading(Message("progress of scrubs and rebuilds")),
    "properties": describe_reading(Message("properties")),
    "datasets": describe_reading(Message("datasets")),
    "snapshots": describe_reading(Message("snapshots")),
    "disks": describe_reading(Message("disks")),
    "bays": describe_reading(Message("bays")),
    "services": describe_reading(Message("services")),
    "shares": describe_reading(Message("shares")),
    "accounts": describe_reading(Message("users")),
    "groups": describe_reading(Message("groups")),
    "edits": SourceText(
        Message("manual changes"), Message("Larder cannot see whether its files were changed by hand.")
    ),
    "targets": SourceText(
        Message("manual changes of iSCSI targets"),
        Message("Larder cannot see whether iSCSI targets were changed by hand."),
    ),
    "smb-policy": describe_reading(Message("SMB settings")),
    "remotes": describe_reading(Message("other computers for backups")),
    "receivers": describe_reading(Message("pairings with other boxes")),
    "imports": describe_reading(Message("imports of files")),
    "addresses": describe_reading(Message("addresses of the box")),
    "reports": SourceText(Message("pool reports"), Message("Reports of scrubs and rebuilds are not kept.")),
    "alerts": SourceText(Message("alert rules"), Message("Some alert rules cannot be evaluated.")),
    "temperatures": describe_reading(Message("temperatures")),
    "disk-alerts": SourceText(Message("pages of failing disks"), Message("Pages of failing disks are not updated.")),
    "new-disks": SourceText(
        Message("guides to replace a disk"), Message("Guides to replace a disk may not know the new one.")
    ),
    "sleep": SourceText(Message("sleep timers of disks"), Message("The sleep timers of disks cannot be set.")),
    "latency": describe_reading(Message("response times of disks")),
    "caching": describe_reading(Message("caching figures of ZFS")),
    # Stages of the worker's clock.
    "tick-events": SourceText(Message("events"), Message("Events of ZFS and of disks are not processed.")),
    "tick-jobs": SourceText(Message("the start of jobs"), Message("Jobs cannot be started.")),
    "tick-facts": SourceText(Message("the start of readings"), Message("Pools and disks are not read regularly.")),
    "tick-temperatures": SourceText(
        Message("the start of SMART readings"), Message("The health of disks is not read regularly.")
    ),
    "tick-alerts": SourceText(Message("the start of alert rules"), Message("Alert rules are not evaluated regularly.")),
    "tick-mail": SourceText(Message("the start of mail"), Message("Waiting notifications are not sent.")),
    "tick-sweeps": SourceText(Message("benchmarks"), Message("A benchmark cannot continue.")),
    "tick-burn-ins": SourceText(Message("burn-ins of disks"), Message("A burn-in cannot continue.")),
    "tick-scrubs": SourceText(
        Message("scheduled scrubs and trims"), Message("Scheduled scrubs and trims do not start.")
    ),
    "tick-self-tests": SourceText(Message("scheduled self-tests"), Message("Scheduled self-tests do not start.")),
    "tick-backups": SourceText(Message("backups"), Message("Backups are not made.")),
    "tick-received": SourceText(
        Message("retention of received copies"), Message("Expired copies from other boxes are not destroyed.")
    ),
    "tick-imports": SourceText(Message("imports"), Message("Interrupted imports of files do not go on.")),
    "tick-policies": SourceText(Message("automatic snapshots"), Message("Automatic snapshots are not taken.")),
    "tick-housekeeping": SourceText(
        Message("the start of the daily upkeep"), Message("Settings are not copied, and old entries are not removed.")
    ),
    # Work that the clock starts in its own thread.
    "run-facts": SourceText(Message("the reading of pools and disks"), Message("Reading pools and disks fails.")),
    "run-burn-in-readings": SourceText(
        Message("SMART readings of burn-ins"), Message("Disks in burn-in cannot be read.")
    ),
    "run-temperatures": SourceText(Message("SMART readings"), Message("Reading the health of disks fails.")),
    "run-alerts": SourceText(Message("alert rules"), Message("The alert rules fail.")),
    "run-straight-mail": SourceText(
        Message("sending critical mail"), Message("Sending critical alerts by mail fails.")
    ),
    "run-housekeeping": SourceText(Message("the daily upkeep"), Message("The daily upkeep fails.")),
    "run-mail": SourceText(Message("sending mail"), Message("Sending notifications fails.")),
}


def source_text(name: str) -> SourceText:
    return SOURCES.get(name) or describe_reading(name)
