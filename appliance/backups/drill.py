"""Rehearse a restore: bring a whole folder back out of its newest copy, apart, compare every file of it, and remove it.

Each part is restored by the sender of real restores. It is compared with the original's own snapshot of the same
moment, or with the copy's where that is gone (``drill_base.py``).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.backups import drill_scratch, match
from appliance.backups.base import BackupOperation
from appliance.backups.drill_base import DrillOperation, DrillPart, DrillRun
from appliance.backups.drill_scratch import Rehearsed
from appliance.backups.restore_folder import is_raw
from appliance.backups.stored_keys import StoredKeys
from appliance.backups.transfer import read_features, run_transfer, send_flags
from appliance.datasets import reasons
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import size_text
from appliance.message import Message
from appliance.operation import Plan, Step, Work, never
from appliance.zfs import list_snapshots


class DrillBackup(DrillOperation, BackupOperation, tag="drill-backup"):
    """Restore the newest copy of every folder of a backup to ``pool``, compare each file, and remove it all."""

    needs_proof = never

    pool: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.existing_pool(self.pool)

    @property
    def title(self) -> str:
        return Message("Test restoring the backup of {dataset}", dataset=self.dataset)

    def files_used(self) -> tuple[str, ...]:
        return (*super().files_used(), self.drill.scratch)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        parts = self.copied_folders(facts)
        if facts.dataset(self.target) is None:
            yield Reason("backup-no-copy", "{dataset} has no copy yet.", dataset=self.dataset)
        for _original, copy in parts:
            if copy.locked and not is_raw(copy):
                yield reasons.dataset_locked(copy.name)
        yield from self.drill.check_place(self.size(facts), facts)

    def size(self, facts: Facts) -> int:
        return sum(copy.referenced for _one, copy in self.copied_folders(facts)) + drill_scratch.SPARE

    def plan(self, facts: Facts) -> Plan:
        parts, run, drill = self.copied_folders(facts), DrillRun(), self.drill
        keys = StoredKeys.of(parts, facts)
        raw = [one for one, copy in parts if is_raw(copy)]
        volumes = [one for one, copy in parts if copy.kind == "volume"]
        return Plan(
            summary=Message(
                "{count} restored from the newest copy, about {size}, to {scratch}, where nobody can see it. "
                "Every name, size, owner, access right, attribute and content is compared with the original. "
                "Then all of it is removed.",
                count=drill.count_text(len(parts)),
                size=size_text(self.size(facts)),
                scratch=drill.scratch,
            ),
            steps=drill.steps(run, keys, [self.restore_step(one, copy, run, facts) for one, copy in parts], facts),
            identity={
                "operation": msgspec.to_builtins(self),
                "datasets": [(one.guid, copy.guid) for one, copy in parts],
            },
            warnings=tuple(drill.warnings(raw, volumes, keys)),
            undo=Message("Your own files are not changed. You can stop it at any time."),
        )

    def restore_step(self, one: Dataset, copy: Dataset, run: DrillRun, facts: Facts) -> Step:
        place = f"{self.drill.scratch}/{copy.guid}"
        top = facts.dataset(self.pool)
        encrypted, raw = top is not None and top.encryption != "off", is_raw(copy)

        def restore(work: Work) -> None:
            newest = max(list_snapshots.list_snapshots([copy.name]), key=lambda found: found.txg, default=None)
            if newest is None:
                raise Failed(Message("{copy} has no complete copy", copy=copy.name), Message("Run the backup first."))
            flags = send_flags(read_features(self.pool), raw=raw, into_encrypted=encrypted)
            part = Rehearsed(copy, place, newest.short, flags, place, newest.guid, self.key)
            run.add(DrillPart(one, part, other=part.snapshot), run_transfer(work, part, newest.guid))

        shown = Rehearsed(copy, place, "NEWEST", ("-w",) if raw else ("-L", "-e", "-c"), place, 0, self.key)
        full = match.Decision("full")
        text = f"{shlex.join(shown.sender(full))} | {shlex.join(shown.receiver(full))}"
        return Step(
            f"restore-{copy.guid}", Message("Restore {one}", one=one.name), text, self.drill.tidily(restore), (place,)
        )
