"""The registry: every operation that the agent will run. What is not here cannot be asked for."""

from __future__ import annotations

import msgspec

from appliance.benchmarks.cleanup import ClearUp
from appliance.benchmarks.run_case import RunCase
from appliance.datasets.create import CreateDataset
from appliance.datasets.destroy import DestroyDataset
from appliance.datasets.encryption.keys import ChangeKey, ForgetKey, KeepKey, LockDataset
from appliance.datasets.encryption.unlock import UnlockAll, UnlockDataset
from appliance.datasets.permissions import SetAccess
from appliance.datasets.properties import InheritDatasetProperty, SetDatasetProperty
from appliance.datasets.rename_mount import MountDataset, PromoteDataset, RenameDataset, UnmountDataset
from appliance.datasets.rollback import RollBack
from appliance.datasets.user_quotas import SetSpaceQuota
from appliance.datasets.volumes import CreateVolume, GrowVolume
from appliance.disks.erase import WipeDisk
from appliance.disks.selftest import StartSelfTest
from appliance.errors import Refused
from appliance.operation import Operation
from appliance.pools.checkpoint import DiscardCheckpoint, RewindCheckpoint, TakeCheckpoint
from appliance.pools.create import CreatePool
from appliance.pools.export_destroy import DestroyPool, ExportPool
from appliance.pools.import_pool import ImportPool
from appliance.pools.properties import SetPoolProperty
from appliance.pools.scrub import PauseScrub, StartScrub, StopScrub
from appliance.pools.trim import StartTrim, StopTrim
from appliance.pools.upgrade import UpgradePool
from appliance.pools.vdevs.aux_vdevs import AddCache, AddLog, AddSpare, RemoveVdev
from appliance.pools.vdevs.expand import AddGroup, ExpandRaidz, GrowGroup
from appliance.pools.vdevs.online_offline import ClearErrors, OfflineDisk, OnlineDisk
from appliance.pools.vdevs.replace import AttachDisk, DetachDisk, ReplaceDisk
from appliance.shares.approve import AcceptShares
from appliance.shares.drift.resolve import AdoptDrift, OverwriteDrift
from appliance.shares.end_connection import EndConnection
from appliance.shares.set_share import SetShare
from appliance.shares.set_smb_security import SetSmbPolicy
from appliance.shares.troubleshoot.fixes import LetIn, ServeAgain
from appliance.snapshots.bookmarks import BookmarkSnapshot, DestroyBookmark
from appliance.snapshots.browse.restore import RestoreFromSnapshot
from appliance.snapshots.destroy import DestroySnapshots, PruneSnapshots
from appliance.snapshots.hold_clone import CloneSnapshot, HoldSnapshot, ReleaseSnapshot, RenameSnapshot
from appliance.snapshots.set_policy import SetPolicy
from appliance.snapshots.take import RunPolicies, TakeSnapshot
from appliance.users.accounts import CreateAccount, RenameAccount, SetPassword, SwitchAccount
from appliance.users.groups import CreateGroup, RemoveGroup, SetMembers
from appliance.users.remove import RemoveAccount

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
