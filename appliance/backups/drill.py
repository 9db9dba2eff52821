"""Rehearse a restore: bring a whole folder back out of its newest copy, apart, compare every file of it, and remove it.

Each part is restored by the sender of real restores. It is compared with the original's own snapshot of the same moment, or
with the copy's where that is gone. However a drill ends, nothing of it stays (``drill_scratch.py``).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import msgspec

from appliance import command, names
from appliance.backups import drill_scratch, match
from appliance.backups.base import BackupOperation
from appliance.backups.compare import Sample, TreeComparison
from appliance.backups.drill_scratch import Rehearsed
from appliance.backups.restore_folder import is_raw
from appliance.backups.stored_keys import StoredKeys
from appliance.backups.transfer import read_features, run_transfer, send_flags
from appliance.backups.verify_backup import compare_opened, result_line
from appliance.datasets import reasons
from appliance.errors import Cancelled, Failed, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import duration_text, size_text
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, never
from appliance.zfs import list_snapshots, private_mount

PREFIX = "rehearsed "  # of the note that holds the result, for whoever keeps it


class Rehearsal(msgspec.Struct, frozen=True):
    """What a drill found, as it stands in the job's log. ``seconds``: that restoring took. ``skipped``: parts that could not
    be opened; ``gone``: parts whose original no longer has that moment, so that they were compared with the copy."""

    seconds: int
    parts: int
    moved: int  # bytes that were sent
    files: int
    size: int
    different: int
    differences: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class DrillRun(msgspec.Struct):
    """What the steps of a drill tell each other."""

    began: float = 0.0
    seconds: float = 0.0
    moved: int = 0
    parts: list[tuple[Dataset, Rehearsed]] = msgspec.field(default_factory=list)  # each with its original


class DrillBackup(BackupOperation, tag="drill-backup"):
    """Restore the newest copy of every folder of a backup to ``pool``, compare each file, and remove it all."""

    needs_proof = never
    settled = Message("Larder was interrupted meanwhile; what was restored for the test is gone again.")

    pool: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.existing_pool(self.pool)

    @property
    def title(self) -> str:
        return Message("Test restoring the backup of {dataset}", dataset=self.dataset)

    @property
    def scratch(self) -> str:
        return drill_scratch.scratch_of(self.pool, self.key)

    def files_used(self) -> tuple[str, ...]:
        return (*super().files_used(), self.scratch)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        parts = self.copied_folders(facts)
        if facts.dataset(self.target) is None:
            yield Reason("backup-no-copy", "{dataset} has no copy yet.", dataset=self.dataset)
        for _original, copy in parts:
            if copy.locked and not is_raw(copy):
                yield reasons.dataset_locked(copy.name)
        yield from self.check_place(facts)

    def check_place(self, facts: Facts) -> Iterator[Reason]:
        """The reasons against the pool that it restores to."""
        top, scratch = facts.dataset(self.pool), facts.dataset(self.scratch)
        if top is None:
            yield reasons.dataset_missing(self.pool).with_field("pool")
            return
        if top.locked:
            yield reasons.dataset_locked(self.pool)
        if top.readonly:
            yield reasons.dataset_read_only(self.pool)
        if scratch and not drill_scratch.is_scratch(scratch):
            yield reasons.dataset_exists(self.scratch)
        free = drill_scratch.room(top, scratch)
        if (needed := self.size(facts)) > free:
            yield Reason(
                "drill-no-room",
                "The test needs about {needed} for a while, and {pool} has {free} for it: a tenth of the pool stays free. "
                "Make room there, or add a larger pool.",
                needed=size_text(needed),
                pool=self.pool,
                free=size_text(free),
            )

    def size(self, facts: Facts) -> int:
        return sum(copy.referenced for _one, copy in self.copied_folders(facts)) + drill_scratch.SPARE

    def plan(self, facts: Facts) -> Plan:
        parts, run = self.copied_folders(facts), DrillRun()
        argv = drill_scratch.create_argv(self.scratch)
        text = f"zfs destroy -r -- {self.scratch}"
        keys = StoredKeys.of(parts, facts)
        steps = [
            Step("prepare", Message("Make a folder to restore to"), shlex.join(argv), partial(self.prepare, run), (self.scratch,)),
            *(self.restore_step(one, copy, run, facts) for one, copy in parts),
            Step("compare", Message("Compare every file"), Message("mount -t zfs -o ro SNAPSHOT, seen by nobody else"), self.tidily(partial(self.compare_all, run, keys)), (self.scratch,)),
            Step("remove", Message("Remove what was restored"), text, self.remove, (self.scratch,)),
        ]  # fmt: skip
        count = (
            Message("{dataset} and {number} folders below it are", dataset=self.dataset, number=len(parts) - 1)
            if len(parts) > 1
            else Message("{dataset} is", dataset=self.dataset)
        )
        return Plan(
            summary=Message(
                "{count} restored out of the newest copy, about {size}, to {scratch}, where nobody sees it. Every name, size, owner, access right, attribute and content is compared with the original. Then all of it is removed.",
                count=count,
                size=size_text(self.size(facts)),
                scratch=self.scratch,
            ),
            steps=tuple(steps),
            identity={
                "operation": msgspec.to_builtins(self),
                "datasets": [(one.guid, copy.guid) for one, copy in parts],
            },
            warnings=tuple(self.warnings(parts, keys)),
            undo=Message("Nothing of yours is changed. You can stop it at any time."),
        )

    def warnings(self, parts: list[tuple[Dataset, Dataset]], keys: StoredKeys) -> Iterator[str]:
        if closed := [one.name for one, copy in parts if is_raw(copy) and not keys.should_have(one)]:
            yield Message(
                "Restored, but not compared, since this box does not store the key: {closed}.",
                closed=", ".join(closed[:5]),
            )
        if volumes := [one.name for one, copy in parts if copy.kind == "volume"]:
            yield Message(
                "Restored, but not compared, since volumes have no files: {volumes}.", volumes=", ".join(volumes[:5])
            )

    # --- the steps ----------------------------------------------------------------------------------------------------
    def tidily(self, act: Callable[[Work], None]) -> Callable[[Work], None]:
        """``act``, after whose failure nothing of the drill stays. What is stopped on purpose is cleaned up by ``clean_up``."""

        def run(work: Work) -> None:
            try:
                act(work)
            except Cancelled:
                raise
            except Exception:
                try:
                    drill_scratch.remove_scratch(self.scratch, work)
                except (Failed, Refused) as error:
                    work.note(
                        Message("{scratch} stays for now: {error}", scratch=self.scratch, error=explain_error(error))
                    )
                raise

        return run

    def prepare(self, run: DrillRun, work: Work) -> None:
        """Begin anew: what an interrupted drill left is of another moment."""
        drill_scratch.remove_scratch(self.scratch, work)
        run.began = time.monotonic()
        command.run(drill_scratch.create_argv(self.scratch), timeout=300)

    def restore_step(self, one: Dataset, copy: Dataset, run: DrillRun, facts: Facts) -> Step:
        place = f"{self.scratch}/{copy.guid}"
        top = facts.dataset(self.pool)
        encrypted, raw = top is not None and top.encryption != "off", is_raw(copy)

        def restore(work: Work) -> None:
            newest = max(list_snapshots.list_snapshots([copy.name]), key=lambda found: found.txg, default=None)
            if newest is None:
                raise Failed(Message("{copy} has no complete copy", copy=copy.name), Message("Run the backup first."))
            flags = send_flags(read_features(self.pool), raw=raw, into_encrypted=encrypted)
            part = Rehearsed(copy, place, newest.short, flags, place, newest.guid, self.key)
            run.moved += run_transfer(work, part, newest.guid)
            run.parts.append((one, part))
            run.seconds = time.monotonic() - run.began

        shown = Rehearsed(copy, place, "NEWEST", ("-w",) if raw else ("-L", "-e", "-c"), place, 0, self.key)
        full = match.Decision("full")
        text = f"{shlex.join(shown.sender(full))} | {shlex.join(shown.receiver(full))}"
        return Step(
            f"restore-{copy.guid}", Message("Restore {one}", one=one.name), text, self.tidily(restore), (place,)
        )

    def compare_all(self, run: DrillRun, keys: StoredKeys, work: Work) -> None:
        """Compare every part, note what was found, and fail where something is different."""
        result, skipped, gone = TreeComparison(), list[str](), list[str]()
        for one, part in run.parts:
            why = self.compare_part(one, part, keys, result, gone, work)
            if why:
                skipped.append(one.name)
                work.note(Message("{one} was restored, but not compared: {why}.", one=one.name, why=why))
        for line in result.differences:
            work.note(Message("Different: {line}", line=line))
        found = Rehearsal(
            int(run.seconds), len(run.parts), run.moved, result.files, result.size, result.different,
            tuple(result.differences[:5]), tuple(skipped[:5]), tuple(gone[:5]),
        )  # fmt: skip
        work.note(result_line(PREFIX, found))
        work.note(
            Message(
                "{moved} restored in {duration_text}; {files} files compared, {size}.",
                moved=size_text(run.moved),
                duration_text=duration_text(int(run.seconds)),
                files=result.files,
                size=size_text(result.size),
            )
        )
        if result.different:
            raise Failed(
                Message(
                    "{different} differences between {dataset} and what its copy restores",
                    different=result.different,
                    dataset=self.dataset,
                ),
                join_messages(result.differences[:5], "; "),
            )

    def compare_part(
        self, one: Dataset, part: Rehearsed, keys: StoredKeys, result: TreeComparison, gone: list[str], work: Work
    ) -> str:
        """Compare one restored dataset; why it could not be, empty where it was."""
        if part.is_volume:
            return Message("a volume has no files")
        if part.raw:
            try:
                keys.unlock(one, part.target)
            except Failed as error:
                return explain_error(error)
        originals = [found.name for found in list_snapshots.list_snapshots([one.name]) if found.guid == part.guid]
        with ExitStack() as stack:
            try:
                restored = stack.enter_context(private_mount.root_of(f"{part.target}@{part.short}"))
            except Failed as error:
                return explain_error(error)
            for other in (*originals, part.snapshot):
                try:
                    with private_mount.root_of(other) as here:
                        if other == part.snapshot:
                            gone.append(one.name)
                        compare_opened(one.name, here, restored, Sample(), result, work)
                        return ""
                except Failed as error:
                    work.note(explain_error(error))
                except OSError as error:
                    return error.strerror or Message("it cannot be read")
        return Message("neither the original nor the copy can be opened")

    def remove(self, work: Work) -> None:
        drill_scratch.remove_scratch(self.scratch, work)

    # --- after an interruption ----------------------------------------------------------------------------------------
    def probe(self, step: str, facts: Facts) -> bool:
        return False  # an interrupted drill has proved nothing; the next begins anew

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.dataset(self.scratch):
            return Message(
                "{scratch} is left of it; Larder removes it. Start the test again to have a result.",
                scratch=self.scratch,
            )
        return Message("Nothing of it is left. Start the test again to have a result.")

    def clean_up(self, work: Work) -> None:
        drill_scratch.remove_scratch(self.scratch, work)
