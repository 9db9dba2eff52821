"""What pages know of each operation: where to go on when its job is done, and how its review asks for a secret.

One table, keyed by the operation's class; ``tests/web/jobs/test_operation_ui.py`` sees that none is missing.
"""

from __future__ import annotations

from django.utils.translation import gettext
from msgspec.structs import replace

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
from appliance.imports.run_import import RunImport
from appliance.imports.set_password import SetImportPassword
from appliance.imports.set_up import AddImport, ConfirmImportKey, RemoveImport
from appliance.imports.try_import import TestImport
from appliance.operation import Operation, Plan, kind_of
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
from appliance.recovery import phrase
from appliance.recovery.take_place import TakePlace
from appliance.recovery.write_record import WriteRecord
from appliance.rehearsal.rehearse import CleanUpRehearsal, RehearseRebuild
from appliance.shares.approve import ApproveShares
from appliance.shares.drift.resolve import AdoptDrift, OverwriteDrift
from appliance.shares.drift.targets import OverwriteTarget
from appliance.shares.end_connection import EndConnection
from appliance.shares.iscsi.part import LONGEST_SECRET, SHORTEST_SECRET
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
from web.jobs import secret_fields
from web.jobs.operation_pages import Away, OperationUi
from web.jobs.secret_fields import NEW_KEY_FILE, NEW_PASSPHRASE, PAIRING_CODE, POOL_KEY_FILE, POOL_PASSPHRASE, Secret
from web.translation import lazy_text

POOLS = OperationUi("pools", lazy_text("See the pool"))
FOLDERS = OperationUi("folders", lazy_text("See the folders"))
VOLUMES = OperationUi("volumes", lazy_text("See the volumes"))
USERS = OperationUi("users", lazy_text("See the users"))
SNAPSHOTS = OperationUi("snapshots", lazy_text("See the snapshots"))
DISKS = OperationUi("disks", lazy_text("See the disks"))
DRIFT = OperationUi("edits", lazy_text("See the manual changes"))
REPLACEMENT = OperationUi("replacements", lazy_text("Continue the replacement"))
REPLACEMENT_STEPS = (
    lazy_text("Choose the disk"),
    lazy_text("Take it out of use"),
    lazy_text("Pull it out"),
    lazy_text("Put the new one in"),
    lazy_text("Rebuild"),
    lazy_text("Done"),
)
BOX = OperationUi("box", lazy_text("See the system"))
BACKUPS = OperationUi("backups", lazy_text("See the backups"))
REMOTES = OperationUi("remotes", lazy_text("See the computers"))
RECEIVERS = OperationUi("receivers", lazy_text("See the received copies"))
RECOVERY = OperationUi("recovery", lazy_text("See what is left to do"))
IMPORTS = OperationUi("imports", lazy_text("See the imports"))
BENCHMARKS = OperationUi("benchmarks", lazy_text("See the benchmarks"))
SETTINGS_TRIED = OperationUi("new_client_run", lazy_text("See what is kept"))

NEW_KEY = replace(FOLDERS, secret=NEW_PASSPHRASE, key_file=NEW_KEY_FILE)

UI: dict[type[Operation], OperationUi] = {
    CreatePool: replace(
        POOLS,
        secret=POOL_PASSPHRASE,
        key_file=POOL_KEY_FILE,
        steps=(
            lazy_text("Name"),
            lazy_text("Disks and layout"),
            lazy_text("Log, cache, spares"),
            lazy_text("Options"),
            lazy_text("Review"),
        ),
    ),
    ImportPool: POOLS,
    ExportPool: OperationUi("import_pools", lazy_text("Import a pool")),
    DestroyPool: OperationUi("import_pools", lazy_text("Recover it")),
    UpgradePool: POOLS,
    SetPoolProperty: POOLS,
    RehearseRebuild: POOLS,
    CleanUpRehearsal: POOLS,
    TakeCheckpoint: POOLS,
    DiscardCheckpoint: POOLS,
    RewindCheckpoint: POOLS,
    StartScrub: POOLS,
    PauseScrub: POOLS,
    StopScrub: POOLS,
    StartTrim: POOLS,
    StopTrim: POOLS,
    AddVdev: POOLS,
    ExpandRaidz: POOLS,
    AutoexpandVdev: POOLS,
    AddSpare: POOLS,
    AddLog: POOLS,
    AddCache: POOLS,
    RemoveVdev: POOLS,
    AttachDisk: POOLS,
    DetachDisk: POOLS,
    OnlineDisk: POOLS,
    ClearErrors: POOLS,
    ReplaceDisk: replace(REPLACEMENT, steps=REPLACEMENT_STEPS, review_at=3, followed=True),
    OfflineDisk: REPLACEMENT,
    SetBackup: BACKUPS,
    SetCopyAside: BACKUPS,
    TakePlace: replace(
        RECOVERY,
        secret=Secret(
            lazy_text("Recovery phrase of the other box"),
            lazy_text("As it is printed: seven groups of four letters and digits, with or without hyphens."),
            twice=False,
            check=phrase.spell_phrase,
        ),
    ),
    WriteRecord: replace(RECOVERY, link=lazy_text("See the records")),
    RestoreFolder: replace(FOLDERS, made=True),
    RestoreRemote: replace(FOLDERS, made=True),
    RunBackup: BACKUPS,
    SendBackup: BACKUPS,
    AddRemote: REMOTES,
    ConfirmHostKey: REMOTES,
    TestRemote: REMOTES,
    RemoveRemote: REMOTES,
    PairBox: replace(REMOTES, secret=PAIRING_CODE),
    ReceiveCopies: replace(RECEIVERS, link=lazy_text("Show the code")),
    RemoveReceiver: RECEIVERS,
    SetReceivedRetention: RECEIVERS,
    PruneReceived: RECEIVERS,
    AddImport: replace(IMPORTS, secret=secret_fields.SOURCE_PASSWORD),
    ConfirmImportKey: IMPORTS,
    SetImportPassword: replace(IMPORTS, secret=secret_fields.SOURCE_PASSWORD),
    TestImport: IMPORTS,
    RunImport: IMPORTS,
    RemoveImport: IMPORTS,
    VerifyBackup: BACKUPS,
    CheckBackupKeys: replace(
        BACKUPS,
        secret=Secret(
            lazy_text("Passphrase"),
            lazy_text("The one of the encrypted folder. It is tried on its copies, and not kept."),
            twice=False,
        ),
        key_file=Secret(
            lazy_text("Key file"),
            lazy_text("The one of the encrypted folder. It is tried on its copies, and not kept."),
            twice=False,
        ),
    ),
    DrillBackup: BACKUPS,
    DrillRemote: BACKUPS,
    RemoveDrill: BACKUPS,
    DiscardReceived: BACKUPS,
    EraseDisk: DISKS,
    StartSelfTest: DISKS,
    BurnInDisk: DISKS,
    CreateDataset: NEW_KEY,
    DestroyDataset: FOLDERS,
    RenameDataset: FOLDERS,
    PromoteDataset: FOLDERS,
    MountDataset: FOLDERS,
    UnmountDataset: FOLDERS,
    SetDatasetProperty: FOLDERS,
    InheritDatasetProperty: FOLDERS,
    SetUserQuota: FOLDERS,
    SetAccess: FOLDERS,
    CreateVolume: VOLUMES,
    GrowVolume: VOLUMES,
    UnlockDataset: replace(
        FOLDERS,
        secret=Secret(lazy_text("Passphrase"), lazy_text("The one you chose when you made it."), twice=False),
        key_file=Secret(lazy_text("Key file"), lazy_text("The file that you saved when you made it."), twice=False),
    ),
    UnlockAll: replace(
        FOLDERS, secret=Secret(lazy_text("Passphrase"), lazy_text("It is tried on each of them."), twice=False)
    ),
    LockDataset: FOLDERS,
    ChangeKey: NEW_KEY,
    StoreKey: replace(
        FOLDERS,
        secret=Secret(
            lazy_text("Passphrase"), lazy_text("The one that opens it now. It is tried before it is kept."), twice=False
        ),
        key_file=Secret(
            lazy_text("Key file"), lazy_text("The one that opens it now. It is tried before it is kept."), twice=False
        ),
    ),
    DeleteStoredKey: FOLDERS,
    TakeSnapshot: SNAPSHOTS,
    RunSnapshotPolicies: SNAPSHOTS,
    DestroySnapshots: SNAPSHOTS,
    PruneSnapshots: SNAPSHOTS,
    SetSnapshotPolicy: SNAPSHOTS,
    HoldSnapshot: SNAPSHOTS,
    ReleaseSnapshot: SNAPSHOTS,
    RenameSnapshot: SNAPSHOTS,
    CloneSnapshot: FOLDERS,
    BookmarkSnapshot: SNAPSHOTS,
    DestroyBookmark: SNAPSHOTS,
    RollBack: SNAPSHOTS,
    RestoreFromSnapshot: SNAPSHOTS,
    SetShare: FOLDERS,
    SetTarget: replace(VOLUMES, secret=secret_fields.CHAP_SECRET),
    ApproveShares: FOLDERS,
    RepublishShare: FOLDERS,
    OpenTopFolder: FOLDERS,
    AdoptDrift: DRIFT,
    OverwriteDrift: DRIFT,
    OverwriteTarget: DRIFT,
    EndConnection: OperationUi("connected", lazy_text("See who is connected")),
    SetSmbSecurity: OperationUi("protection", lazy_text("See how SMB is protected")),
    CreateAccount: replace(
        USERS,
        secret=Secret(
            lazy_text("Password"),
            lazy_text("At least 8 characters. It is typed on the other computer to reach a share."),
            twice=True,
            password=True,
        ),
    ),
    ShareFolder: replace(
        FOLDERS,
        secret=Secret(
            lazy_text("Password for {user}"),
            lazy_text("At least 8 characters. {user} types it on the other computer to open the folder."),
            twice=True,
            password=True,
        ),
    ),
    SetPassword: replace(
        USERS, secret=Secret(lazy_text("New password"), lazy_text("At least 8 characters."), twice=True, password=True)
    ),
    RenameAccount: USERS,
    EnableAccount: USERS,
    RemoveAccount: USERS,
    CreateGroup: USERS,
    SetMembers: USERS,
    RemoveGroup: USERS,
    RunBenchmarkCase: BENCHMARKS,
    CleanUpBenchmark: BENCHMARKS,
    KeepSetting: SETTINGS_TRIED,
    PutSettingBack: SETTINGS_TRIED,
    ForgetPort: SETTINGS_TRIED,
    RestartBox: replace(
        BOX,
        away=Away(
            lazy_text("The box is restarting."),
            lazy_text(
                "It is usually back within three minutes. Leave this page open: it tells you when the box is back."
            ),
            lazy_text("The box is restarting and does not answer yet. This page tells you when it is back."),
        ),
    ),
    ShutDownBox: replace(
        BOX,
        away=Away(
            lazy_text("The box is switching off."),
            lazy_text("That takes up to two minutes. To start it again, press its power button."),
            lazy_text("The box is off, or will be in a moment. To start it again, press its power button."),
        ),
    ),
    SetHostName: BOX,
    TryMtu: BOX,
    KeepMtu: BOX,
    SetTimeServers: BOX,
    SetTimeZone: BOX,
}
BY_KIND = {kind_of(operation): ui for operation, ui in UI.items()}


def secrets_of(operation: Operation, plan: Plan) -> tuple[Secret, ...]:
    """How the page asks for the secrets that go with this operation: none, one, or the password of each new user."""
    ui = UI[type(operation)]
    asked = ui.key_file if plan.key_file else ui.secret
    if asked is None or not operation.wants_secret():
        return ()
    if isinstance(operation, ShareFolder):
        return tuple(password_of(name, asked) for name in operation.new_users)
    if isinstance(operation, SetTarget) and operation.iscsi and operation.iscsi.back_user:
        back = gettext(
            "The other computer asks this box for it. Another one, also of {shortest_secret} to {longest_secret}."
        ).format(shortest_secret=SHORTEST_SECRET, longest_secret=LONGEST_SECRET)
        return (asked, replace(asked, label=gettext("Secret of this box"), help=back, field="secret-back"))
    return (asked,)


def password_of(user: str, asked: Secret) -> Secret:
    return replace(
        asked, label=asked.label.format(user=user), help=asked.help.format(user=user), field=f"secret-{user}"
    )


def makes_folder(kind: str) -> bool:
    return BY_KIND.get(kind, POOLS).made


def is_followed(kind: str) -> bool:
    return BY_KIND.get(kind, POOLS).followed


def away_by(kind: str) -> Away | None:
    """What to say where the job takes the box itself away."""
    return BY_KIND.get(kind, POOLS).away


def page_after(kind: str) -> tuple[str, str]:
    """The route and the label of the link on the page of a job that is done; a kind of an older
    Larder leads to the pools."""
    ui = BY_KIND.get(kind, POOLS)
    return ui.route, ui.link
