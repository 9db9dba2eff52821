"""The registry: every operation that the agent will run. What is not here cannot be asked for."""

from __future__ import annotations

import msgspec

from appliance.disks.selftest import StartSelfTest
from appliance.disks.wipe import WipeDisk
from appliance.errors import Refused
from appliance.operation import Operation
from appliance.shares.accepting import AcceptShares
from appliance.shares.again import LetIn, ServeAgain
from appliance.shares.deciding import AdoptDrift, OverwriteDrift
from appliance.shares.ending_connection import EndConnection
from appliance.shares.groups import CreateGroup, RemoveGroup, SetMembers
from appliance.shares.people import CreateAccount, RenameAccount, SetPassword, SwitchAccount
from appliance.shares.permissions import SetAccess
from appliance.shares.protecting import SetSmbPolicy
from appliance.shares.removal import RemoveAccount
from appliance.shares.share import SetShare
from appliance.sweeps.clear_up import ClearUp
from appliance.sweeps.run_case import RunCase
from appliance.zfs.bookmarks import BookmarkSnapshot, DestroyBookmark
from appliance.zfs.checkpoints import DiscardCheckpoint, RewindCheckpoint, TakeCheckpoint
from appliance.zfs.clearing import DestroySnapshots, PruneSnapshots
from appliance.zfs.dataset_properties import InheritDatasetProperty, SetDatasetProperty
from appliance.zfs.datasets import CreateDataset
from appliance.zfs.destroying import DestroyDataset
from appliance.zfs.ending import DestroyPool, ExportPool
from appliance.zfs.extras import AddCache, AddLog, AddSpare, RemoveVdev
from appliance.zfs.grow import AddGroup, ExpandRaidz, GrowGroup
from appliance.zfs.importing import ImportPool
from appliance.zfs.keeping import CloneSnapshot, HoldSnapshot, ReleaseSnapshot, RenameSnapshot
from appliance.zfs.keys import ChangeKey, ForgetKey, KeepKey, LockDataset
from appliance.zfs.placing import MountDataset, PromoteDataset, RenameDataset, UnmountDataset
from appliance.zfs.policing import SetPolicy
from appliance.zfs.pools import CreatePool
from appliance.zfs.properties import SetPoolProperty
from appliance.zfs.replace import AttachDisk, DetachDisk, ReplaceDisk
from appliance.zfs.restoring import RestoreFromSnapshot
from appliance.zfs.rolling_back import RollBack
from appliance.zfs.scrubs import PauseScrub, StartScrub, StopScrub
from appliance.zfs.space_quotas import SetSpaceQuota
from appliance.zfs.states import ClearErrors, OfflineDisk, OnlineDisk
from appliance.zfs.taking import RunPolicies, TakeSnapshot
from appliance.zfs.trims import StartTrim, StopTrim
from appliance.zfs.unlocking import UnlockAll, UnlockDataset
from appliance.zfs.upgrade import UpgradePool
from appliance.zfs.volumes import CreateVolume, GrowVolume

Life = StartScrub | PauseScrub | StopScrub | StartTrim | StopTrim | SetPoolProperty
Moving = (
    ImportPool
    | ExportPool
    | DestroyPool
    | TakeCheckpoint
    | DiscardCheckpoint
    | RewindCheckpoint
    | UpgradePool
    | WipeDisk
    | StartSelfTest
)
Topology = (
    ReplaceDisk | AttachDisk | DetachDisk | AddGroup | ExpandRaidz | GrowGroup
    | AddSpare | AddLog | AddCache | RemoveVdev | OnlineDisk | OfflineDisk | ClearErrors
)  # fmt: skip
Snapshots = TakeSnapshot | RunPolicies | DestroySnapshots | PruneSnapshots | SetPolicy
Keeping = (
    HoldSnapshot
    | ReleaseSnapshot
    | RenameSnapshot
    | CloneSnapshot
    | BookmarkSnapshot
    | DestroyBookmark
    | RollBack
    | RestoreFromSnapshot
)
People = (
    CreateAccount | SetPassword | RenameAccount | SwitchAccount | RemoveAccount
    | CreateGroup | SetMembers | RemoveGroup | SetAccess
)  # fmt: skip
Folders = (
    CreateDataset | SetDatasetProperty | InheritDatasetProperty | SetSpaceQuota | RenameDataset | PromoteDataset
    | MountDataset | UnmountDataset | DestroyDataset | UnlockDataset | UnlockAll | LockDataset | ChangeKey | KeepKey
    | ForgetKey | CreateVolume | GrowVolume
)  # fmt: skip
Shares = SetShare | AcceptShares | ServeAgain | LetIn | AdoptDrift | OverwriteDrift | EndConnection | SetSmbPolicy
Sweeps = RunCase | ClearUp
Registered = CreatePool | Folders | People | Shares | Life | Moving | Topology | Snapshots | Keeping | Sweeps


def decode_operation(text: str | bytes) -> Operation:
    """An operation from its JSON. Raises Refused for anything that is none, with the sentence of its grammar."""
    try:
        operation: Operation = msgspec.json.decode(text, type=Registered)
        return operation
    except msgspec.MsgspecError as error:
        raise Refused(f"That is not an operation that Larder knows: {error}") from error
    except RecursionError as error:
        raise Refused("That is not an operation that Larder knows.") from error
