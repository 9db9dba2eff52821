"""Destroy received copies that the retention of their pairing lets go.
Only this box decides that: a sender cannot ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from appliance import schedule
from appliance.backups import copies, unchanged
from appliance.backups.pairing import receivers
from appliance.backups.remote import settings
from appliance.backups.retention import expired_received
from appliance.backups.tasks import HOME
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import is_continued
from appliance.facts.datasets import Snapshot
from appliance.facts.kept_copies import Keep
from appliance.facts.receiver import Receiver
from appliance.message import Message, join_messages
from appliance.operation import Loss, Work, never
from appliance.request import Request
from appliance.snapshots import space
from appliance.snapshots.destroy import DestroySnapshots, staying_notes
from appliance.zfs import libzfs, list_snapshots

NAMED = 5
PARTS_OF_ROOT = 3  # tank/backups/attic


class CopiesInUse(msgspec.Struct, frozen=True):
    """``copies``: those whose snapshots all stay for now.
    ``needed``: guids of snapshots from which a half received copy goes on."""

    copies: tuple[str, ...] = ()
    needed: tuple[int, ...] = ()


class ReadCopiesInUse(Request, tag="read-copies-in-use"):
    """What of a pairing's copies stays for now, so that no job is started that would find nothing to destroy."""

    receiver: str

    def __post_init__(self) -> None:
        settings.check_key(self.receiver, field="receiver")

    def read(self) -> CopiesInUse:
        found = receivers.find_receiver(self.receiver)
        below = unchanged.read_below(found.root, (copies.RESUME,))
        tokens = {
            name: copies.read_token(text) for name, values in below.items() if (text := values.get(copies.RESUME))
        }
        unknown = {name for name, token in tokens.items() if not token.to_guid}
        needed = {token.from_guid for token in tokens.values() if token.to_guid}
        return CopiesInUse(tuple(sorted({*receivers.copies_in_use(found), *unknown})), tuple(sorted(needed)))


class PruneReceived(DestroySnapshots, tag="prune-received"):
    """Destroy snapshots of one pairing's copies. Which of those that are asked for may go, the agent
    finds out by itself: by its own note of the retention, and what ZFS says of each copy when it is its
    turn. So no proof is needed."""

    needs_proof = never

    receiver: str

    def __post_init__(self) -> None:
        super().__post_init__()
        settings.check_key(self.receiver, field="receiver")
        roots = {tuple(name.split("/")[:PARTS_OF_ROOT]) for name in self.datasets}
        inside = all(name.count("/") >= PARTS_OF_ROOT for name in self.datasets)
        if len(roots) != 1 or not inside or next(iter(roots))[1] != HOME:
            raise Refused(Reason("not-received-copies", "Those are not copies of one other Larder.", field="snapshots"))

    @property
    def subject(self) -> str:
        return "/".join(self.datasets[0].split("/")[:PARTS_OF_ROOT])

    @property
    def title(self) -> str:
        if len(self.snapshots) == 1:
            return Message("Destroy 1 snapshot in {root} that is no longer kept", root=self.subject)
        return Message(
            "Destroy {count} snapshots in {root} that are no longer kept",
            count=len(self.snapshots),
            root=self.subject,
        )

    def find_receiver(self, facts: Facts) -> Receiver | None:
        """The pairing, where its folder is the one that it was made with."""
        found, root = facts.receiver(self.receiver), facts.dataset(self.subject)
        here = found is not None and root is not None and (found.root, found.guid) == (root.name, root.guid)
        return found if here else None

    def check(self, facts: Facts) -> Iterator[Reason]:
        if self.find_receiver(facts) is None:
            yield receivers.receiver_missing()
        yield from super().check(facts)

    def find_chosen(self, facts: Facts) -> list[Snapshot]:
        """Those of the chosen that the retention lets go, as far as the facts tell."""
        found = self.find_receiver(facts)
        if found is None or found.keep is None:
            return []
        now, zone = datetime.now(UTC), schedule.box_zone()
        going: set[tuple[str, int]] = set()
        for name in self.datasets:
            copy = facts.dataset(name)
            if copy and is_continued(copy.copy_of):
                expired = expired_received(facts.snapshots_of(name), found.keep, now, zone)
                going.update((one.name, one.guid) for one in expired)
        return [one for one in super().find_chosen(facts) if (one.name, one.guid) in going]

    def list_losses(self, chosen: Sequence[Snapshot]) -> tuple[Loss, ...]:
        """All that were requested: nobody reviews them, and one that is held meanwhile just stays."""
        return super().list_losses(())

    def destroy_all(self, work: Work, going: Sequence[Snapshot], freed: space.Freed, stay: Sequence[str] = ()) -> None:
        """Copy by copy, each looked at again right before. One that fails keeps no other from being pruned."""
        for text in staying_notes(stay):
            work.note(text)
        found = receivers.find_receiver(self.receiver)
        if copies.read_values(found.root, ("guid",)).get("guid") != str(found.guid) or found.keep is None:
            raise Refused(receivers.receiver_missing())
        by_copy: dict[str, list[Snapshot]] = {}
        for one in going:
            by_copy.setdefault(one.dataset, []).append(one)
        failures: list[str] = []
        done = 0
        for number, (copy, chosen) in enumerate(by_copy.items()):
            work.progress(number * 100 // len(by_copy), copy)
            work.stop_if_asked()
            try:
                done += prune_copy(work, found, found.keep, copy, chosen)
            except Failed as error:
                failures.append(Message("{copy}: {error}", copy=copy, error=explain_error(error)))
                work.note(failures[-1])
        work.note(Message("{done} of {total} destroyed.", done=done, total=len(going)))
        if failures:
            left = len(failures) - NAMED
            more = Message("And {count} more.", count=left) if left > 0 else ""
            raise Failed(Message("Some copies were not pruned"), join_messages([*failures[:NAMED], more]))


def prune_copy(work: Work, receiver: Receiver, keep: Keep, copy: str, chosen: Sequence[Snapshot]) -> int:
    """Destroy those of the chosen snapshots that may still go; how many did. Raises Failed."""
    values = copies.read_values(copy, (copies.RESUME, user_properties.COPY_OF))
    if not is_continued(values.get(user_properties.COPY_OF, "")):
        return 0  # it was destroyed or set aside meanwhile
    if copy in receivers.copies_in_use(receiver):
        work.note(Message("{copy} is in use by the other box just now. Its snapshots stay until later.", copy=copy))
        return 0
    needed: set[int] = set()
    if text := values.get(copies.RESUME, ""):
        token = copies.read_token(text)
        if not token.to_guid:
            work.note(
                Message(
                    "{copy} is half received, and ZFS does not say from which snapshot it goes on. Its snapshots stay.",
                    copy=copy,
                )
            )
            return 0
        needed.add(token.from_guid)
    now, zone = datetime.now(UTC), schedule.box_zone()
    known = list(list_snapshots.list_snapshots([copy]))
    wanted = {(one.name, one.guid) for one in chosen}
    going = [one.name for one in expired_received(known, keep, now, zone, needed) if (one.name, one.guid) in wanted]
    left = libzfs.destroy_snapshots(going)
    for failure in left:
        work.note(Message("{failure} stays: {why}", failure=failure.name, why=failure.why))
    if left and len(left) == len(going):
        raise Failed(Message("ZFS destroyed none of them"), left[0].why)
    return len(going) - len(left)
