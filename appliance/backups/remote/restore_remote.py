"""Restore a folder whole out of its copy on another computer: the steps of ``RestoreFolder``, with ssh as the sender.

What the other computer says is checked before anything is made here, and what it has sent before that gets its name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from appliance.backups import match
from appliance.backups.moments import Kept, choose_snapshots
from appliance.backups.origin import origin_of
from appliance.backups.remote import connection, settings
from appliance.backups.remote.answers import RemoteCopy
from appliance.backups.remote.remote_source import RemoteRestored, RemoteSource, mode_of_part
from appliance.backups.remote.send_backup import lock_of
from appliance.backups.restore_base import FolderRestore, moment_text
from appliance.backups.staging import Restored, Staging
from appliance.backups.tasks import MB, MOST_RATE
from appliance.errors import Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset, Property
from appliance.facts.pool_reasons import stopped_pool
from appliance.facts.remote import Remote
from appliance.formatting import duration_text, rate_text, round_time_left, size_text
from appliance.message import Message
from appliance.operation import Plan, Step, Work, never
from appliance.strict_struct import StrictStruct

SHORT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")  # names of snapshots that can be restored: a backup's are such
LATEST = 2**33  # seconds since 1970


class RemotePart(StrictStruct):
    """A dataset of the copy as the other computer has listed it. ``snapshot``: the guid of the one that comes back.

    ``original``: the guid of the folder that it is a copy of; ``size`` in bytes;
    ``created``: when that snapshot was made, in seconds since 1970, 0: not known.
    """

    name: str
    guid: int
    snapshot: int
    short: str
    original: int
    size: int
    raw: bool = False
    volume: bool = False
    created: int = 0

    def __post_init__(self) -> None:
        settings.check_remote_name(self.name, field="snapshot")
        if not SHORT.fullmatch(self.short):
            raise Refused(
                Reason("restore-snapshots-malformed", "Those are not the snapshots of one copy.", field="snapshot")
            )
        if (
            not all(0 < guid < 2**64 for guid in (self.guid, self.snapshot))
            or not 0 <= self.original < 2**64
            or not 0 <= self.size < 2**63
            or not 0 <= self.created < LATEST
        ):
            raise Refused(
                Reason("restore-snapshots-malformed", "Those are not the snapshots of one copy.", field="snapshot")
            )


class RemoteRestoreRun(msgspec.Struct):
    """What the first step tells the others."""

    source: RemoteSource | None = None


class RestoreRemote(FolderRestore, tag="restore-remote"):
    """Copy ``parts`` back from the computer ``remote``. ``created``: the moment, in seconds since 1970.
    ``rate``: at most so many MB a second, 0 for any number. ``left``: folders of the copy that have no such moment."""

    needs_proof = never

    remote: str
    parts: tuple[RemotePart, ...]
    created: int
    rate: int = 0
    left: int = 0

    def __post_init__(self) -> None:
        settings.check_key(self.remote)
        settings.check_remote_name(self.copy, field="copy")
        super().__post_init__()
        if self.guid != self.parts[0].guid or not 0 <= self.created < LATEST or not 0 <= self.left < 10**6:
            raise Refused(
                Reason("restore-snapshots-malformed", "Those are not the snapshots of one copy.", field="snapshot")
            )
        if not 0 <= self.rate <= MOST_RATE:
            raise Refused(
                Reason(
                    "backup-rate-out-of-range",
                    "Enter a number of MB a second from 1 to {most}.",
                    field="rate",
                    most=MOST_RATE,
                )
            )

    def sources(self) -> Iterator[tuple[str, int]]:
        return ((part.name, part.snapshot) for part in self.parts)

    def dates(self, facts: Facts) -> Iterator[tuple[str, str, datetime | None]]:  # the same for every restore
        for part in self.parts:
            yield part.name, part.short, datetime.fromtimestamp(part.created, UTC) if part.created else None

    @property
    def title(self) -> str:
        return Message("Restore {target} from another computer", target=self.target)

    def locks(self) -> tuple[str, ...]:
        return (lock_of(self.remote),)

    def files_used(self) -> tuple[str, ...]:
        return (self.parent,)

    # --- what speaks against it ---------------------------------------------------------------------------------------
    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from settings.check_confirmed(facts.remote(self.remote))
        name = self.parent.split("/", 1)[0]
        if (pool := facts.pool(name)) and pool.state == "SUSPENDED":
            yield stopped_pool(name)
        yield from self.check_place(facts)

    def size(self, facts: Facts) -> int:  # the same for every restore
        return sum(part.size for part in self.parts)

    def original(self, facts: Facts) -> Dataset | None:
        return find_original(self.parts[0], facts)

    # --- the plan -----------------------------------------------------------------------------------------------------
    def plan(self, facts: Facts) -> Plan:
        remote, staging = self.find(facts), self.staging(facts)
        run = RemoteRestoreRun()
        count = len(self.parts)
        what = Message("{copy} and {number} below it", copy=self.copy, number=count - 1) if count > 1 else self.copy
        when = moment_text(datetime.fromtimestamp(self.created, UTC))
        asked = [connection.shown(remote, words) for words in (("hello",), ("tree", self.copy))]
        connect = Step(
            "connect",
            Message("Ask {host} for the copy", host=remote.host),
            "\n".join(asked),
            partial(self.connect, run),
        )
        made = self.plan_of(
            facts,
            [self.copy_step(one, remote, staging, run) for one in staging.parts],
            summary=Message(
                "{what}: everything as it was on {when}, about {size}, is copied from {root} on {host} to "
                "{target}. The copy stays as it is, and nothing on this box is overwritten.",
                what=what,
                when=when,
                size=size_text(self.size(facts)),
                root=remote.root,
                host=remote.host,
                target=self.target,
            ),
            warnings=tuple(self.warnings(facts)),
            details=self.details(staging, facts),
        )
        at = [remote.host, remote.port, remote.user, remote.root, remote.host_key]
        return replace(made, steps=(connect, *made.steps), identity={**made.identity, "remote": at})

    def find(self, facts: Facts) -> Remote:
        found = facts.remote(self.remote)
        if found is None:
            raise Refused(settings.remote_missing())
        return found

    def time_text(self, remote: Remote) -> str:
        """How long it will take, by the last measured pace."""
        return time_text(self.size(Facts()), remote.pace, self.rate * MB)

    def details(self, staging: Staging, facts: Facts) -> dict[str, str]:
        said = super().details(staging, facts)
        if not staging.parts[0].origin:
            said[Message("To be set again")] = Message(
                "access to its files, settings such as compression and record size, shares, snapshot "
                "schedule, backups and limits. A copy there does not remember them."
            )
        return said

    def staging(self, facts: Facts) -> Staging:
        remote = self.find(facts)
        return self.stage_of((self.restored(part, remote, facts) for part in self.parts), facts)

    def restored(self, part: RemotePart, remote: Remote, facts: Facts) -> RemoteRestored:
        """One dataset on its way. Access lists are shown for each: a copy there does not say
        whether its original had any."""
        original, noted = find_original(part, facts), {}
        if original:
            noted[user_properties.ORIGIN] = Property(origin_of(original).text, "local")
        if not part.volume:
            noted["acltype"] = Property("posix", "local")
        source = source_of(part, remote, self.created, noted)
        return RemoteRestored(
            source=source,
            target=self.moved(part.name, f"{self.stage}/{self.name}"),
            short=part.short,
            flags=("-w",) if part.raw else ("-L", "-c"),
            place=self.moved(part.name, self.target),
            guid=part.snapshot,
            remote=remote,
            rate=self.rate * MB,
        )

    def copy_step(self, one: Restored, remote: Remote, staging: Staging, run: RemoteRestoreRun) -> Step:
        known = {part.snapshot: part for part in self.parts}[one.guid]

        def copy(work: Work) -> None:
            if staging.is_placed():
                work.note(Message("{place} is there already", place=one.place))
                return
            if run.source is None:
                raise Refused(settings.remote_missing())
            run.source.bring(work, one, {part.target for part in staging.parts})

        words = ("send", known.name, str(known.snapshot), mode_of_part(one.flags))
        text = f"{connection.shown(remote, words)} | {shlex.join(one.receiver(match.Decision('full')))}"
        return Step(f"copy-{one.guid}", Message("Copy {known}", known=known.name), text, copy, (one.target,))

    def connect(self, run: RemoteRestoreRun, work: Work) -> None:
        """Before anything is made here: whether the copy is there as it was listed."""
        source = RemoteSource.ask(self.remote)
        found = source.read_tree(self.copy)
        for part in self.parts:
            there = found.get(part.name)
            if there is None or there.guid != part.guid or part.snapshot not in there.guids:
                raise Refused(
                    Reason(
                        "remote-copy-changed",
                        "{copy} on {host} no longer has that moment. Choose another one.",
                        copy=part.name,
                        host=source.remote.host,
                    )
                )
            if there.mark is None or there.mark.raw != part.raw or there.is_volume != part.volume:
                raise Refused(
                    Reason(
                        "remote-copy-other",
                        "{copy} on {host} is not the copy that was listed. Choose again.",
                        copy=part.name,
                        host=source.remote.host,
                    )
                )
        source.listed = found
        run.source = source
        work.note(
            Message("{host} has all {count} folders of that moment.", host=source.remote.host, count=len(self.parts))
        )

    def warnings(self, facts: Facts) -> Iterator[str]:
        """What the owner should know before."""
        if self.left:
            below = (
                Message("{count} folders below it", count=self.left) if self.left > 1 else Message("1 folder below it")
            )
            yield Message("Left out, since there is no copy of that moment or an earlier one: {below}.", below=below)
        yield from self.arrival_warnings(facts, [part.raw for part in self.parts])
        yield Message("No backup is sent to that computer meanwhile.")
        yield from self.place_warnings(facts)


def time_text(size: int, pace: int, limit: int) -> str:
    """How long fetching ``size`` bytes will take. ``pace``: of the last transfer, ``limit``:
    in bytes a second; 0: none."""
    slowest = min((one for one in (pace, limit) if one), default=0)
    if not slowest:
        return Message("Not known: no long transfer with this computer was measured yet.")
    took = duration_text(round_time_left(max(size // slowest, 90)))
    if slowest == limit:
        return Message("About {duration} at {rate}, the limit.", duration=took, rate=rate_text(slowest))
    return Message("About {duration} at {rate}, the pace of the last transfer.", duration=took, rate=rate_text(slowest))


def find_original(part: RemotePart, facts: Facts) -> Dataset | None:
    """The folder that this is a copy of, where it is still there."""
    return facts.dataset_of(part.original) if part.original else None


def make_part(name: str, found: RemoteCopy, guid: int, short: str) -> RemotePart:
    """A snapshot of a listed copy, which has a mark, as a part. Raises Refused where its values are none."""
    mark = found.mark or CopyMark(0, raw=False)
    return RemotePart(
        name=name,
        guid=found.guid,
        snapshot=guid,
        short=short,
        original=mark.guid,
        size=found.size_of(guid),
        raw=mark.raw,
        volume=found.is_volume,
        created=min(found.created_at(guid), LATEST - 1),
    )


def source_of(part: RemotePart, remote: Remote, created: int, noted: dict[str, Property]) -> Dataset:
    """A part as the dataset that is received from. ``noted``: what is known of its properties."""
    return Dataset(
        name=f"{remote.root}/{part.name}",
        guid=part.guid,
        kind="volume" if part.volume else "filesystem",
        created=datetime.fromtimestamp(created, UTC),
        used=part.size,
        available=0,
        referenced=part.size,
        properties=noted,
        copy_of=CopyMark(part.original, part.raw).text,
    )


def kept_in(found: Mapping[str, RemoteCopy]) -> list[Kept]:
    """The snapshots of listed copies that can be restored."""
    return [
        Kept(name, short, guid, txg, min(copy.created_at(guid), LATEST - 1))
        for name, copy in found.items()
        for txg, guid, short in copy.snapshots
        if copy.mark and SHORT.fullmatch(short)
    ]


def parts_of(copy: str, found: Mapping[str, RemoteCopy], short: str) -> Sequence[RemotePart]:
    """The copy and those below it as they were at that moment, parents first; none where that moment is not there."""
    chosen = choose_snapshots(kept_in(found), short, copy)
    return [make_part(one.dataset, found[one.dataset], one.guid, one.short) for one in chosen]
