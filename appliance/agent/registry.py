"""The registry: every operation that the agent will run. What is not here cannot be asked for."""

from __future__ import annotations

import msgspec

from appliance.backups.check_keys import CheckBackupKeys
from appliance.backups.discard_received import DiscardReceived
from appliance.backups.drill import DrillBackup
from appliance.backups.drill_scratch import RemoveDrill
from appliance.backups.pairing.pair_box import PairBox
from appliance.backups.pairing.prune_received import PruneReceived
from appliance.backups.pairing.receive_copies import ReceiveCopies
from appliance.backups.pairing.remove_receiver import RemoveReceiver
from appliance.backups.pairing.set_retention import SetReceivedRetention
from appliance.backups.remote.drill_remote import DrillRemote
from appliance.backups.remote.restore_remote import RestoreRemote
from appliance.backups.remote.send_backup import SendBackup
from appliance.backups.remote.set_up import AddRemote, ConfirmHostKey, RemoveRemote, TestRemote
from appliance.backups.restore_folder import RestoreFolder
from appliance.backups.run_backup import RunBackup
from appliance.backups.set_aside import SetCopyAside
from appliance.backups.set_backup import SetBackup
from appliance.backups.verify_backup import VerifyBackup
from appliance.benchmarks.box_settings.keep import KeepSetting, PutSettingBack
from appliance.benchmarks.box_settings.lost_ports import ForgetPort
from appliance.benchmarks.cleanup import CleanUpBenchmark
from appliance.benchmarks.run_case import RunBenchmarkCase
from appliance.burn_in.burn_in_disk import BurnInDisk
from appliance.datasets.create import CreateDataset
from appliance.datasets.destroy import DestroyDataset
from appliance.datasets.encryption.keys import ChangeKey, DeleteStoredKey, LockDataset, StoreKey
from appliance.datasets.encryption.unlock import UnlockAll, UnlockDataset
from appliance.datasets.mount import MountDataset, UnmountDataset
from appliance.datasets.permissions import SetAccess
from appliance.datasets.promote import PromoteDataset
from appliance.datasets.properties import InheritDatasetProperty, SetDatasetProperty
from appliance.datasets.rename import RenameDataset
from appliance.datasets.rollback import RollBack
from appliance.datasets.set_target import SetTarget
from appliance.datasets.user_quotas import SetUserQuota
from appliance.datasets.volumes import CreateVolume, GrowVolume
from appliance.disks.erase import EraseDisk
from appliance.disks.selftest import StartSelfTest
from appliance.errors import Reason, Refused
from appliance.imports.run_import import RunImport
from appliance.imports.set_password import SetImportPassword
from appliance.imports.set_up import AddImport, ConfirmImportKey, RemoveImport
from appliance.imports.try_import import TestImport
from appliance.operation import Operation
from appliance.pools.checkpoint import DiscardCheckpoint, RewindCheckpoint, TakeCheckpoint
from appliance.pools.create import CreatePool
from appliance.pools.export_destroy import DestroyPool, ExportPool
from appliance.pools.import_pool import ImportPool
from appliance.pools.properties import SetPoolProperty
from appliance.pools.scrub import PauseScrub, StartScrub, StopScrub
from appliance.pools.trim import StartTrim, StopTrim
from appliance.pools.upgrade import UpgradePool
from appliance.pools.vdevs.aux_vdevs import AddCache, AddLog, AddSpare
from appliance.pools.vdevs.clear_errors import ClearErrors
from appliance.pools.vdevs.expand import AddVdev, AutoexpandVdev, ExpandRaidz
from appliance.pools.vdevs.online_offline import OfflineDisk, OnlineDisk
from appliance.pools.vdevs.remove import RemoveVdev
from appliance.pools.vdevs.replace import AttachDisk, DetachDisk, ReplaceDisk
from appliance.recovery.take_place import TakePlace
from appliance.recovery.write_record import WriteRecord
from appliance.rehearsal.rehearse import CleanUpRehearsal, RehearseRebuild
from appliance.shares.approve import ApproveShares
from appliance.shares.drift.resolve import AdoptDrift, OverwriteDrift
from appliance.shares.drift.targets import OverwriteTarget
from appliance.shares.end_connection import EndConnection
from appliance.shares.set_share import SetShare
from appliance.shares.set_smb_security import SetSmbSecurity
from appliance.shares.troubleshoot.fixes import OpenTopFolder, RepublishShare
from appliance.snapshots.bookmarks import BookmarkSnapshot, DestroyBookmark
from appliance.snapshots.browse.restore import RestoreFromSnapshot
from appliance.snapshots.destroy import DestroySnapshots, PruneSnapshots
from appliance.snapshots.hold_clone import CloneSnapshot, HoldSnapshot, ReleaseSnapshot, RenameSnapshot
from appliance.snapshots.set_policy import SetSnapshotPolicy
from appliance.snapshots.take import RunSnapshotPolicies, TakeSnapshot
from appliance.system.power import RestartBox, ShutDownBox
from appliance.system.set_host_name import SetHostName
from appliance.system.set_mtu import KeepMtu, TryMtu
from appliance.system.time_servers import SetTimeServers
from appliance.system.time_zone import SetTimeZone
from appliance.users.accounts import CreateAccount, EnableAccount, RenameAccount
from appliance.users.groups import CreateGroup, RemoveGroup, SetMembers
from appliance.users.remove import RemoveAccount
from appliance.users.set_password import SetPassword
from appliance.users.share_folder import ShareFolder

Registered = (
    RunBackup
    | SendBackup
    | SetBackup
    | SetCopyAside
    | RestoreFolder
    | RestoreRemote
    | TakePlace
    | WriteRecord
    | VerifyBackup
    | CheckBackupKeys
    | DrillBackup
    | DrillRemote
    | RemoveDrill
    | DiscardReceived
    | AddRemote
    | ConfirmHostKey
    | TestRemote
    | RemoveRemote
    | PairBox
    | ReceiveCopies
    | RemoveReceiver
    | SetReceivedRetention
    | PruneReceived
    | AddImport
    | ConfirmImportKey
    | SetImportPassword
    | TestImport
    | RunImport
    | RemoveImport
    | KeepSetting
    | PutSettingBack
    | ForgetPort
    | CleanUpBenchmark
    | RunBenchmarkCase
    | BurnInDisk
    | CreateDataset
    | DestroyDataset
    | ChangeKey
    | DeleteStoredKey
    | StoreKey
    | LockDataset
    | UnlockAll
    | UnlockDataset
    | SetAccess
    | InheritDatasetProperty
    | SetDatasetProperty
    | MountDataset
    | PromoteDataset
    | RenameDataset
    | UnmountDataset
    | RollBack
    | SetUserQuota
    | CreateVolume
    | GrowVolume
    | EraseDisk
    | StartSelfTest
    | DiscardCheckpoint
    | RewindCheckpoint
    | TakeCheckpoint
    | CreatePool
    | DestroyPool
    | ExportPool
    | ImportPool
    | SetPoolProperty
    | RehearseRebuild
    | CleanUpRehearsal
    | PauseScrub
    | StartScrub
    | StopScrub
    | StartTrim
    | StopTrim
    | UpgradePool
    | AddCache
    | AddLog
    | AddSpare
    | RemoveVdev
    | AddVdev
    | ExpandRaidz
    | AutoexpandVdev
    | ClearErrors
    | OfflineDisk
    | OnlineDisk
    | AttachDisk
    | DetachDisk
    | ReplaceDisk
    | ApproveShares
    | AdoptDrift
    | OverwriteDrift
    | OverwriteTarget
    | EndConnection
    | SetShare
    | SetSmbSecurity
    | SetTarget
    | ShareFolder
    | OpenTopFolder
    | RepublishShare
    | BookmarkSnapshot
    | DestroyBookmark
    | RestoreFromSnapshot
    | DestroySnapshots
    | PruneSnapshots
    | CloneSnapshot
    | HoldSnapshot
    | ReleaseSnapshot
    | RenameSnapshot
    | SetSnapshotPolicy
    | RunSnapshotPolicies
    | TakeSnapshot
    | CreateAccount
    | RenameAccount
    | SetPassword
    | EnableAccount
    | CreateGroup
    | RemoveGroup
    | SetMembers
    | RemoveAccount
    | RestartBox
    | ShutDownBox
    | SetHostName
    | TryMtu
    | KeepMtu
    | SetTimeServers
    | SetTimeZone
)


def decode_operation(text: str | bytes) -> Operation:
    """An operation from its JSON. Raises Refused for anything that is none, with the sentence of its grammar."""
    try:
        operation: Operation = msgspec.json.decode(text, type=Registered)
        return operation
    except msgspec.MsgspecError as error:
        raise Refused(
            Reason("operation-malformed", "Larder does not know that operation: {error}", error=error)
        ) from error
    except RecursionError as error:
        raise Refused(Reason("operation-unknown", "Larder does not know that operation.")) from error
