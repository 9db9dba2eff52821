"""Where a person goes on once a job is done: by the kind of its operation, the page's name and the words of its button."""

from __future__ import annotations

POOL = ("pools", "See the pool")
FOLDERS = ("folders", "See the folders")
VOLUMES = ("volumes", "See the volumes")
PEOPLE = ("people", "See the people")
SNAPSHOTS = ("snapshots", "See the snapshots")
EDITS = ("edits", "See what was changed by hand")
REPLACEMENT = ("replacements", "Go on with the replacement")

AFTER: dict[str, tuple[str, str]] = {
    "CreateDataset": FOLDERS,
    "SetShare": FOLDERS,
    "AcceptShares": FOLDERS,
    "UnlockDataset": FOLDERS,
    "SetDatasetProperty": FOLDERS,
    "InheritDatasetProperty": FOLDERS,
    "SetSpaceQuota": FOLDERS,
    "RenameDataset": FOLDERS,
    "PromoteDataset": FOLDERS,
    "MountDataset": FOLDERS,
    "UnmountDataset": FOLDERS,
    "DestroyDataset": FOLDERS,
    "UnlockAll": FOLDERS,
    "LockDataset": FOLDERS,
    "ChangeKey": FOLDERS,
    "KeepKey": FOLDERS,
    "ForgetKey": FOLDERS,
    "CreateVolume": VOLUMES,
    "GrowVolume": VOLUMES,
    "CreateAccount": PEOPLE,
    "SetPassword": PEOPLE,
    "TakeSnapshot": SNAPSHOTS,
    "DestroySnapshots": SNAPSHOTS,
    "PruneSnapshots": SNAPSHOTS,
    "RunPolicies": SNAPSHOTS,
    "SetPolicy": SNAPSHOTS,
    "HoldSnapshot": SNAPSHOTS,
    "ReleaseSnapshot": SNAPSHOTS,
    "RenameSnapshot": SNAPSHOTS,
    "CloneSnapshot": FOLDERS,
    "BookmarkSnapshot": SNAPSHOTS,
    "DestroyBookmark": SNAPSHOTS,
    "RollBack": SNAPSHOTS,
    "RestoreFromSnapshot": SNAPSHOTS,
    "StartSelfTest": ("disks", "See the disks"),
    "RenameAccount": PEOPLE,
    "SwitchAccount": PEOPLE,
    "RemoveAccount": PEOPLE,
    "CreateGroup": PEOPLE,
    "SetMembers": PEOPLE,
    "RemoveGroup": PEOPLE,
    "SetAccess": FOLDERS,
    "EndConnection": ("connected", "See who is connected"),
    "SetSmbPolicy": ("protection", "See how SMB is protected"),
    "AdoptDrift": EDITS,
    "OverwriteDrift": EDITS,
    "WipeDisk": ("disks", "See the disks"),
    "DestroyPool": ("bring_in", "Bring it back"),
    "ExportPool": ("bring_in", "Bring in a pool"),
    "ReplaceDisk": REPLACEMENT,
    "OfflineDisk": REPLACEMENT,
    "RunCase": ("sweeps", "See the measurements"),
    "ClearUp": ("sweeps", "See the measurements"),
}


def page_after(kind: str) -> tuple[str, str]:
    """Most of what is done is done to a pool."""
    return AFTER.get(kind, POOL)
