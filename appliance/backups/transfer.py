"""Send one snapshot of a dataset to another place: decide, send, and prove that it has arrived."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence

import msgspec

from appliance import command
from appliance.backups import copies, match
from appliance.backups.receive import LOCAL, Destination
from appliance.backups.stream import send_stream
from appliance.errors import Failed, Reason, Refused
from appliance.facts.datasets import Dataset
from appliance.formatting import duration_text, rate_text, size_text, time_left
from appliance.message import Message, join_messages
from appliance.operation import Work
from appliance.zfs import kernel_module, list_snapshots

MOST_STREAMS = 4  # the rest of an interrupted run, what is discarded, the increment, and one look more
SECONDS_TO_ESTIMATE = 300
# Without these a stream may hold blocks that the destination cannot store (zpool-features(7)).
FEATURES = ("large_blocks", "embedded_data", "lz4_compress", "zstd_compress")
SIZE = re.compile(r"^size\t(\d+)$", re.MULTILINE)


class Transfer(msgspec.Struct, frozen=True):
    """What is sent, and where. ``short``: of the snapshot; ``flags`` are those of ``zfs send`` for it."""

    source: Dataset
    target: str
    short: str
    flags: tuple[str, ...]

    @property
    def destination(self) -> Destination:
        """Where ``target`` lies."""
        return LOCAL

    @property
    def is_foreign(self) -> bool:
        """Whether another computer sends the stream, which can make up what it likes."""
        return False

    @property
    def raw(self) -> bool:
        """Whether it is sent encrypted, as it lies on the disk."""
        return "-w" in self.flags

    @property
    def snapshot(self) -> str:
        return f"{self.source.name}@{self.short}"

    @property
    def properties(self) -> dict[str, str]:
        """What has to be set on the target, its mark among it."""
        raise NotImplementedError

    def read_points(self) -> list[match.Point]:
        """The moments of the source that can be sent from, snapshots before bookmarks. Raises Failed."""
        return copies.read_points(self.source.name)

    def expected_size(self, decision: match.Decision) -> int:
        """The bytes that a stream will have as far as that is known; 0 where it is not."""
        return estimate(self.sender(decision, "-n", "-P"))

    @property
    def sending_version(self) -> str:
        """The version of ZFS that sends."""
        return kernel_module.read_version()

    def most_bytes_a_second(self) -> int:
        """How fast it may be sent at this moment; 0: as fast as it can be."""
        return 0

    def sender(self, decision: match.Decision, *more: str) -> list[str]:
        if decision.kind == "resume":
            # -w goes with it: a token that was made up would have an encrypted dataset sent
            # decrypted (openzfs/zfs#14153).
            return ["zfs", "send", *more, *(["-w"] if self.raw else []), "-t", decision.token]
        base = ["-i", decision.base] if decision.base else []
        return ["zfs", "send", *more, *self.flags, *base, "--", self.snapshot]

    def receiver(self, decision: match.Decision) -> list[str]:
        return self.destination.receiver(self.target, self.properties, new=decision.kind == "full")


def send_flags(features: dict[str, str], *, raw: bool, into_encrypted: bool) -> tuple[str, ...]:
    """The flags for a dataset's streams. Raw: encrypted as it lies on the disk (-w). Otherwise blocks stay large,
    compressed and embedded where the destination can store such; ZFS embeds none in what it encrypts."""
    if raw:
        return ("-w",)
    if not all(features.get(name) in {"enabled", "active"} for name in FEATURES):
        return ()
    return ("-L", "-c") if into_encrypted else ("-L", "-e", "-c")


def read_features(pool: str) -> dict[str, str]:
    """The state of FEATURES of a pool: enabled, active or disabled. Raises Failed, also for an answer that tells less:
    streams without large blocks would not fit on a copy that has them."""
    wanted = ",".join(f"feature@{name}" for name in FEATURES)
    said = command.run(["zpool", "get", "-H", "-o", "property,value", wanted, pool], timeout=60).stdout
    rows = (line.partition("\t") for line in said.splitlines())
    found = {name.removeprefix("feature@"): state for name, _, state in rows}
    if set(found) != set(FEATURES) or not set(found.values()) <= {"enabled", "active", "disabled"}:
        raise Failed(
            Message("Larder could not read what the pool {pool} can store", pool=pool),
            Message("ZFS gave an answer that Larder does not understand."),
        )
    return found


def find_snapshot(one: Transfer) -> int:
    """The guid of the snapshot that is to be sent. Raises Failed where it is gone."""
    found = (found.guid for found in list_snapshots.list_snapshots([one.source.name]) if found.short == one.short)
    wanted = next(found, 0)
    if not wanted:
        raise Failed(
            Message("{snapshot} is gone", snapshot=one.snapshot),
            Message("It was destroyed before it was copied. Start again."),
        )
    return wanted


def run_transfer(work: Work, one: Transfer, wanted: int) -> int:
    """Send until the target has the snapshot with the guid ``wanted``; the bytes that were sent.
    Raises Refused, Failed, Cancelled."""
    check_decrypting(one)
    moved = 0
    for _stream in range(MOST_STREAMS):
        copy = one.destination.read_copy(one.target)
        Refused.unless_empty(
            reason for reason in [match.conflict(one.source.name, one.source.guid, one.raw, copy)] if reason
        )
        decision = match.decide(one.source.name, one.read_points(), wanted, one.raw, copy)
        if isinstance(decision, Reason):
            raise Refused(decision)
        if decision.kind == "arrived":
            one.destination.settle(work, one.target, one.properties)
            return moved
        if decision.kind == "discard":
            work.note(
                Message(
                    "What an interrupted run left in {target} no longer fits, so it is discarded.", target=one.target
                )
            )
            one.destination.discard(one.target)
            continue
        if decision.kind == "increment" and one.raw:
            check_keys(decision.base, one, copy)
        moved += run_stream(work, one, decision)
        if copy.mark is None:  # an interrupted receive may have lost what was set at its beginning
            one.destination.settle(work, one.target, one.properties)
    raise Failed(
        Message("The copy of {source} is not complete", source=one.source.name),
        Message("{target} does not show {snapshot}.", target=one.target, snapshot=one.short),
    )


def run_stream(work: Work, one: Transfer, decision: match.Decision) -> int:
    sender, receiver = one.sender(decision), one.receiver(decision)
    work.note(f"{shlex.join(sender)} | {shlex.join(receiver)}")
    total = one.expected_size(decision)
    check_room(one, total)
    began = time.monotonic()

    def tell(moved: int) -> None:
        work.progress(*phrase(one.source.name, moved, total, time.monotonic() - began))
        work.stop_if_asked()

    there = one.destination
    moved = send_stream(
        sender,
        receiver,
        tell,
        one.most_bytes_a_second,
        lambda: there.is_stopped(one.target),
        may_end=there.may_end,
        foreign=one.is_foreign,
    )
    passed = duration_text(int(time.monotonic() - began))
    work.note(
        Message("{source}: {size} sent in {duration}.", source=one.source.name, size=size_text(moved), duration=passed)
    )
    return moved


def phrase(name: str, moved: int, total: int, seconds: float) -> tuple[int, str]:
    """Percent, and what is said beside it. ZFS's estimate may be too small, so a stream that runs is never at 100 %."""
    rate = moved / seconds if seconds > 0 else 0.0
    said: str = Message(
        "{name}: {moved} of about {total}", name=name, moved=size_text(moved), total=size_text(max(total, moved))
    )
    if rate > 0 and total > moved and seconds > 5:
        said = join_messages([said, rate_text(int(rate)), time_left(int((total - moved) / rate))], ", ")
    return (min(99, moved * 100 // total) if total else 0), said


def estimate(argv: Sequence[str]) -> int:
    """The bytes that a stream will have as ZFS estimates it; 0 where it does not say."""
    try:
        said = command.run(argv, timeout=SECONDS_TO_ESTIMATE)
    except command.CommandFailed:
        return 0  # the real command says why
    found = SIZE.search(said.stdout + said.stderr)
    return int(found[1]) if found and int(found[1]) < 2**62 else 0


def check_room(one: Transfer, needed: int) -> None:
    """Refuse before anything is sent what the destination has no room for. A receive that fails for want
    of room keeps what has arrived, in space that no list shows. What ZFS compresses anew there may fit all
    the same, so that is tried."""
    if not {"-c", "-w"} & set(one.flags):
        return
    found = one.destination.free_space(one.target)
    if found is None:
        return
    place, free = found
    if needed > free:
        raise Refused(
            Reason(
                "backup-no-room",
                "{source} needs about {needed}, and {place} has {free} free. Make room there, or keep fewer copies.",
                source=one.source.name,
                needed=size_text(needed),
                place=place,
                free=size_text(free),
            )
        )


def check_decrypting(one: Transfer) -> None:
    """Refuse to send an encrypted dataset decrypted where this version of ZFS spoils it: a plain
    copy in an encrypted pool."""
    if one.raw or one.source.encryption == "off" or kernel_module.sends_decrypted_well(one.sending_version):
        return
    raise Refused(
        Reason(
            "send-decrypted-unsafe",
            "{source} is encrypted by its pool, and this version of ZFS can damage what it sends from there. "
            "Update the system (sudo apt update && sudo apt full-upgrade), then restart it.",
            source=one.source.name,
        )
    )


def check_keys(base: str, one: Transfer, copy: match.Copy) -> None:
    """Refuse to continue an encrypted copy from a snapshot of another set of keys: equal guids do not rule it out
    (openzfs/zfs#8758). Bookmarks do not say."""
    if "@" not in base:
        return
    ours, theirs = (
        copies.read_values(base, ["ivsetguid"]).get("ivsetguid"),
        one.destination.key_set(one.target, copy.guids[-1]),
    )
    if ours and theirs and ours != theirs:
        raise Refused(
            Reason(
                "backup-keys-differ",
                "{source} and its copy {target} do not have the same keys. Set the copy aside; the next run "
                "makes a new one.",
                source=one.source.name,
                target=one.target,
            )
        )
