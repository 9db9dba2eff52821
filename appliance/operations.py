"""The registry: every operation that the agent will run. What is not here cannot be asked for."""

from __future__ import annotations

import msgspec

from appliance.disks.selftest import StartSelfTest
from appliance.disks.wipe import WipeDisk
from appliance.errors import Refused
from appliance.operation import Operation
from appliance.shares.accounts import CreateAccount, SetPassword
from appliance.shares.smb import SetShare
from appliance.zfs.checkpoints import DiscardCheckpoint, RewindCheckpoint, TakeCheckpoint
from appliance.zfs.datasets import CreateDataset, UnlockDataset
from appliance.zfs.ending import DestroyPool, ExportPool
from appliance.zfs.extras import AddCache, AddLog, AddSpare, RemoveVdev
from appliance.zfs.grow import AddGroup, ExpandRaidz, GrowGroup
from appliance.zfs.importing import ImportPool
from appliance.zfs.pools import CreatePool
from appliance.zfs.properties import SetPoolProperty
from appliance.zfs.replace import AttachDisk, DetachDisk, ReplaceDisk
from appliance.zfs.scrubs import PauseScrub, StartScrub, StopScrub
from appliance.zfs.states import ClearErrors, OfflineDisk, OnlineDisk
from appliance.zfs.trims import StartTrim, StopTrim
from appliance.zfs.upgrade import UpgradePool

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
Registered = (
    CreatePool | CreateDataset | UnlockDataset | CreateAccount | SetPassword | SetShare | Life | Moving | Topology
)  # fmt: skip


def decode_operation(text: str | bytes) -> Operation:
    """An operation from its JSON. Raises Refused for anything that is none, with the sentence of its grammar."""
    try:
        operation: Operation = msgspec.json.decode(text, type=Registered)
        return operation
    except msgspec.MsgspecError as error:
        raise Refused(f"That is not an operation that Larder knows: {error}") from error
    except RecursionError as error:
        raise Refused("That is not an operation that Larder knows.") from error
