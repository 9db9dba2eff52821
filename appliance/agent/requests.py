"""What the agent can be asked for, and how one request is answered.

A request is one line of JSON; replies are lines of JSON, the last of which holds ``outcome``, ``facts``, ``refused``
(nothing was done) or ``failed`` (it could not be found out). Web and worker are taken to be hostile: every field is
validated here by its own grammar, whoever validated it before.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from appliance import names
from appliance.agent import execution, journal, proof
from appliance.agent.read_facts import read_facts
from appliance.agent.registry import Registered
from appliance.datasets import dataset_detail
from appliance.disks import locate, probe, query, smart, standby
from appliance.errors import Failed, LarderError, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.pools import damaged_files, discover, history
from appliance.shares import connections
from appliance.shares.drift import detect
from appliance.shares.settings import Protocol
from appliance.shares.troubleshoot import diagnose
from appliance.snapshots import space
from appliance.snapshots.browse import diff, requests, search
from appliance.system import paths
from appliance.zfs import status

LONGEST_REQUEST = 1024 * 1024  # thousands of snapshots by name and guid
SECONDS_TO_ASK = 30
MOST_DISKS = 128


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="run"):
    """Run an operation under a job's id, once; asked again, follow it or tell its end."""

    job: str
    digest: str
    operation: Registered

    def __post_init__(self) -> None:
        names.job_id(self.job)


class Follow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="follow"):
    """Tell the progress and the end of a job that the agent knows."""

    job: str

    def __post_init__(self) -> None:
        names.job_id(self.job)


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="stop"):
    """Ask a job to stop before its next step."""

    job: str

    def __post_init__(self) -> None:
        names.job_id(self.job)


class Prove(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="prove"):
    """The administrator's password goes with this very job; ``known`` in the answer: there is one to compare it with."""

    job: str
    digest: str
    operation: Registered
    password: str

    def __post_init__(self) -> None:
        names.job_id(self.job)


class KeepPassword(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="keep-password"):
    """Keep the hash of the administrator's password: the first as it comes, another only with the old one."""

    password: str
    old: str = ""


class OfDisks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what is asked of several disks."""

    disks: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.disks) > MOST_DISKS:
            raise Refused(Reason("disks-too-many", "Choose at most {count} disks.", count=MOST_DISKS))
        for path in self.disks:
            names.by_id(path)


class ReadSmart(OfDisks, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-smart"):
    """What drives say of themselves, without waking one that sleeps."""


class ReadContent(OfDisks, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-content"):
    """What disks hold that look empty: somebody is about to take them, so they are woken and read."""


class LetSleep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="let-sleep"):
    """Tell disks after how many minutes without work they go to sleep; 0: never. None is woken for it."""

    disks: dict[str, int]

    def __post_init__(self) -> None:
        if len(self.disks) > MOST_DISKS:
            raise Refused(Reason("disks-too-many", "Choose at most {count} disks.", count=MOST_DISKS))
        for path, minutes in self.disks.items():
            names.by_id(path)
            standby.timer_value(minutes)


class LookForPools(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="look-for-pools"):
    """Which pools lie on the disks without being in use here. It opens every disk: somebody asked."""


class ReadSessions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-sessions"):
    """Who has which share open."""


class ReadConnections(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-connections"
):
    """Who is connected over any protocol, with what open."""


class ReadEdits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-edits"):
    """Which owned files were changed by hand, and how they differ from what would be written."""


class LookAtShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="look-at-share"):
    """What lies between a person and a share: somebody asked why it cannot be seen."""

    dataset: str
    protocol: Protocol
    person: str = ""

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if self.person:
            names.check_user_name(self.person)


class ReadDamage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-damage"):
    """Which files of a pool could not be repaired."""

    pool: str

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)


class ReadHistory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-history"):
    """What was done to a pool, the latest lines."""

    pool: str

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)


class ReadDataset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-dataset"):
    """What would go with a dataset, and who takes up its space."""

    dataset: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)


class OfSnapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what is read of a snapshot's content: its full name, and the way down to a file or folder in it."""

    snapshot: str
    path: str = ""

    def __post_init__(self) -> None:
        names.existing_snapshot(self.snapshot)
        names.parse_relative_path(self.path)

    @property
    def dataset(self) -> str:
        return self.snapshot.partition("@")[0]


class ListFolder(OfSnapshot, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="list-folder"):
    """What a folder of a snapshot holds, a page from ``after`` on."""

    after: str = ""


class OpenFile(OfSnapshot, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="open-file"):
    """A file of a snapshot: the reply brings its descriptor, for reading."""


class ReadVersions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-versions"):
    """The versions of one file across all snapshots of its dataset."""

    dataset: str
    path: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        names.parse_relative_path(self.path)


class SearchNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="search-names"):
    """Files and folders by a part of their name, in the snapshots that are older than the guid ``after``."""

    dataset: str
    text: str
    after: str = ""
    room: int = search.MOST

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        search.check_request(self.text, self.after, self.room)


class ReadDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-difference"):
    """What changed from a snapshot to a later one of the same dataset, or until now, as far as it is found in that time."""

    snapshot: str
    until: str = ""
    seconds: int = diff.SECONDS

    def __post_init__(self) -> None:
        names.existing_snapshot(self.snapshot)
        if not 1 <= self.seconds <= diff.SECONDS:
            raise Refused(Reason("wait-out-of-range", "That is not a time to wait."))
        if self.until:
            names.existing_snapshot(self.until)


class ReadSpace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="read-space"):
    """What rows of neighbouring snapshots hold, each of one dataset, and who holds which. Full names."""

    ranges: tuple[tuple[str, str], ...] = ()
    held: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.ranges) > space.MOST_RANGES or len(self.held) > space.MOST_HELD:
            raise Refused(Reason("request-for-too-much", "That is more than can be asked for at once."))
        for name in (*(one for pair in self.ranges for one in pair), *self.held):
            names.existing_snapshot(name)


class Locate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="verb", tag="locate"):
    """Make the light of a disk's bay, or the disk's own, show where it is, for half a minute. Nothing is changed."""

    disk: str

    def __post_init__(self) -> None:
        names.by_id(self.disk)


Request = (
    Run
    | Follow
    | Stop
    | Prove
    | KeepPassword
    | ReadSmart
    | ReadContent
    | LetSleep
    | LookForPools
    | LookAtShare
    | ReadSessions
    | ReadConnections
    | ReadEdits
    | ReadDamage
    | ReadHistory
    | ReadDataset
    | ListFolder
    | OpenFile
    | ReadVersions
    | SearchNames
    | ReadDifference
    | ReadSpace
    | Locate
)


def decode(line: bytes) -> Request:
    """A request from its line. Raises Refused."""
    if len(line) > LONGEST_REQUEST:
        raise Refused(Reason("request-too-long", "The request is too long."))
    try:
        request: Request = msgspec.json.decode(line, type=Request)
        return request
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(
            Reason("request-unknown", "The agent does not know that request: {error}", error=error)
        ) from error


def one_by_one(
    disks: Iterable[str], ask: Callable[[str], object], send: Callable[[dict[str, Any]], None]
) -> dict[str, object]:
    """What each disk answers. A word goes out after each: several that hang take minutes, and whoever asked must not take
    that for silence and lose the answers of the others."""
    found = {}
    for path in disks:
        found[path] = ask(path)
        send({"asked": path})
    return found


def smart_of(path: str) -> object:
    """The JSON of smartctl for one disk, None where it has none; one bad disk does not hide the others.

    Only what can sleep is left asleep. One that answers nothing says so in smartctl's shape.
    """
    gently = ["-n", "standby"] if standby.is_rotating(path) else []
    try:
        return smart.parse_json(query.query_disk(path, ["smartctl", "--json", *gently, "-a", path], timeout=30).stdout)
    except query.Silent as problem:
        return smart.no_answer(explain_error(problem))
    except Failed:
        return None


def hand_over_nothing(_message: dict[str, Any], _handle: int) -> None:
    raise Failed("This connection cannot carry an open file")


def answer(
    line: bytes,
    send: Callable[[dict[str, Any]], None],
    facts: Callable[[], Facts] = read_facts,
    hand_over: Callable[[dict[str, Any], int], None] = hand_over_nothing,
) -> None:
    """Answer one request; whatever it holds, something is sent and nothing is raised.

    ``hand_over`` sends a message and an open descriptor with it.
    """
    try:
        match decode(line):
            case Run(job, digest, operation):
                execution.execute(job, operation, digest, facts, send)
            case Follow(job):
                if journal.read_journal(job) is None:
                    send({"outcome": execution.outcome(None)})
                else:
                    execution.follow(job, facts, send)
            case Stop(job):
                send({"outcome": {"stopping": execution.ask_to_stop(job)}})
            case Prove(job, digest, operation, password):
                if proof.is_set():
                    proof.grant(job, operation, digest, password)
                send({"facts": {"known": proof.is_set()}})
            case KeepPassword(password, old):
                proof.store_hash(password, old)
                send({"facts": {"kept": True}})
            case Locate(disk):
                locate.show_disk(disk, send)
            case ReadSmart(disks):
                send({"facts": one_by_one(disks, smart_of, send)})
            case ReadContent(disks):
                send({"facts": msgspec.to_builtins(probe.probe_disks(facts(), disks))})
            case LetSleep(disks):
                send({"facts": one_by_one(disks, lambda path: standby.set_timer(path, disks[path]), send)})
            case LookForPools():
                send({"facts": msgspec.to_builtins(discover.discover_pools())})
            case LookAtShare(dataset, protocol, person):
                send({"facts": msgspec.to_builtins(diagnose.diagnose_share(dataset, protocol, person))})
            case ReadSessions():
                send({"facts": msgspec.to_builtins(connections.read_sessions())})
            case ReadConnections():
                send({"facts": msgspec.to_builtins(connections.read_connections())})
            case ReadEdits():
                send({"facts": msgspec.to_builtins(detect.detect_drift(detect.facts_now()))})
            case ReadDamage(pool):
                send({"facts": damaged_files.read_damaged_files(pool)})
            case ReadDataset(dataset):
                found = next((one for one in status.read_datasets() if one.name == dataset), None)
                send({"facts": msgspec.to_builtins(dataset_detail.read_detail(found)) if found else None})
            case ListFolder(snapshot, path, after):
                send({"facts": msgspec.to_builtins(requests.list_folder(snapshot, path, after))})
            case OpenFile(snapshot, path):
                with requests.open_file(snapshot, path) as (told, handle):
                    hand_over({"facts": told}, handle)
            case ReadVersions(dataset, path):
                send({"facts": msgspec.to_builtins(requests.versions_of(dataset, path))})
            case SearchNames(dataset, text, after, room):
                send({"facts": msgspec.to_builtins(search.search_names(dataset, text, after, room, send))})
            case ReadDifference(snapshot, until, seconds):
                send({"facts": msgspec.to_builtins(diff.read_diff(snapshot, until, seconds))})
            case ReadSpace(ranges, held):
                send({"facts": msgspec.to_builtins(space.measure_space(ranges, held))})
            case ReadHistory(pool):
                send({"facts": {"lines": history.read_history(pool)}})
    except Refused as refusal:
        send({"refused": [reason.as_json() for reason in refusal.reasons]})
    except Exception as error:
        if not isinstance(error, LarderError):
            traceback.print_exc()
        send({"failed": explain_error(error)})


def allowed(connection: socket.socket) -> bool:
    """Only root and the owner of Larder's own folders may ask."""
    _pid, uid, _gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in {0, paths.SECRETS.stat().st_uid}


def converse(connection: socket.socket) -> None:
    """Read one request from a connection and answer it. Ends the process where the peer may not ask."""
    if not allowed(connection):
        sys.exit("larder-agent: refused a connection from another user")
    connection.settimeout(SECONDS_TO_ASK)
    received = b""
    while b"\n" not in received and len(received) <= LONGEST_REQUEST:
        part = connection.recv(65536)
        if not part:
            break
        received += part

    def send(message: dict[str, Any]) -> None:
        try:
            connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # Whoever asked is gone. The work goes on: the journal keeps what becomes of it.
            pass

    def hand_over(message: dict[str, Any], handle: int) -> None:
        try:
            socket.send_fds(connection, [json.dumps(message).encode() + b"\n"], [handle])
        except OSError:
            pass  # as above

    answer(received.partition(b"\n")[0], send, hand_over=hand_over)
