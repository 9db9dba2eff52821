"""The registry of requests: everything that web and worker may ask the agent. What is not here is not answered."""

from __future__ import annotations

import msgspec

from appliance.agent.job_requests import Follow, KeepPassword, Prove, RunJob, Stop
from appliance.agent.recovery_requests import ConfirmRecoveryPhrase, MakeRecoveryPhrase, ReadBoxRecord, ReadRecovery
from appliance.agent.settings_requests import KeepBoxSettings, ReadBoxSettings
from appliance.backups.pairing.prune_received import ReadCopiesInUse
from appliance.backups.pairing.requests import AcceptPairing, MakePairingCode, WithdrawPairingCode
from appliance.backups.remote.requests import ListRemoteCopies, ReadRemoteCopy
from appliance.benchmarks.box_settings.switch import ReadSettings, SwitchSetting
from appliance.benchmarks.wire import OpenWire
from appliance.datasets.dataset_detail import ReadDataset
from appliance.disks.disk_request import LetSleep, ReadSmart
from appliance.disks.locate import Locate
from appliance.disks.probe import ReadContent
from appliance.errors import Reason, Refused
from appliance.imports.report import ReadImportReport
from appliance.pools.damaged_files import ReadDamage
from appliance.pools.discover import LookForPools
from appliance.pools.history import ReadHistory
from appliance.request import LONGEST_REQUEST, Request
from appliance.shares.connections import ReadConnections, ReadSessions
from appliance.shares.drift.detect import ReadEdits
from appliance.shares.drift.targets import ReadTargetEdits
from appliance.shares.iscsi.diagnose import LookAtTarget
from appliance.shares.troubleshoot.diagnose import LookAtShare
from appliance.snapshots.browse.diff import ReadDifference
from appliance.snapshots.browse.requests import ListFolder, OpenFile, ReadVersions
from appliance.snapshots.browse.search import SearchNames
from appliance.snapshots.space import ReadSpace
from appliance.support.bundle import MakeBundle
from appliance.system.journal import ReadLog

RegisteredRequest = (
    RunJob
    | Follow
    | Stop
    | Prove
    | KeepPassword
    | ReadSmart
    | ReadContent
    | LetSleep
    | Locate
    | LookForPools
    | ReadDamage
    | ReadHistory
    | ReadDataset
    | ReadSpace
    | ListFolder
    | OpenFile
    | ReadVersions
    | SearchNames
    | ReadDifference
    | ReadSessions
    | ReadConnections
    | ReadEdits
    | ReadTargetEdits
    | LookAtShare
    | ReadLog
    | ReadImportReport
    | MakeBundle
    | LookAtTarget
    | OpenWire
    | ReadSettings
    | SwitchSetting
    | ReadRecovery
    | MakeRecoveryPhrase
    | ConfirmRecoveryPhrase
    | ReadBoxRecord
    | KeepBoxSettings
    | ReadBoxSettings
    | MakePairingCode
    | WithdrawPairingCode
    | AcceptPairing
    | ReadCopiesInUse
    | ListRemoteCopies
    | ReadRemoteCopy
)


def decode_request(line: bytes) -> Request:
    """A request from its line. Raises Refused for anything that is none."""
    if len(line) > LONGEST_REQUEST:
        raise Refused(Reason("request-too-long", "The request is too long."))
    try:
        request: Request = msgspec.json.decode(line, type=RegisteredRequest)
        return request
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(
            Reason("request-unknown", "The agent does not know that request: {error}", error=error)
        ) from error
