"""What drills have in common, wherever the copy lies: a pool with room, the comparison, what is
noted, and that nothing stays.

However a drill ends, nothing of it stays (``drill_scratch.py``).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import ClassVar

import msgspec

from appliance import command
from appliance.backups import drill_scratch
from appliance.backups.compare import Sample, TreeComparison
from appliance.backups.staging import Restored, noted_if_it_stays
from appliance.backups.stored_keys import StoredKeys
from appliance.backups.verify_backup import compare_opened, conclude, result_line
from appliance.datasets import reasons
from appliance.errors import Cancelled, Failed, Reason, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import duration_text, names_text, size_text
from appliance.message import Message
from appliance.operation import Step, Work
from appliance.zfs import list_snapshots, private_mount

PREFIX = "rehearsed "  # of the note that holds the result, for whoever keeps it
NAMED = 5


class Rehearsal(msgspec.Struct, frozen=True):
    """What a drill found, as it stands in the job's log. ``seconds``: that restoring took. ``skipped``: parts that
    could not be restored or opened; ``gone``: parts whose original no longer has that moment, so that they were
    compared with the copy. ``more_skipped`` and ``more_gone``: how many of these are not named."""

    seconds: int
    parts: int
    moved: int  # bytes that were sent
    files: int
    size: int
    different: int
    differences: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    more_skipped: int = 0
    more_gone: int = 0


class DrillPart(msgspec.Struct, frozen=True):
    """A dataset that was restored. ``other``: a snapshot of this box to compare with where
    the original lost its own."""

    original: Dataset
    restored: Restored
    other: str = ""


class DrillRun(msgspec.Struct):
    """What the steps of a drill tell each other. ``left``: why a dataset was not restored, by its name."""

    began: float = 0.0
    seconds: float = 0.0
    moved: int = 0
    parts: list[DrillPart] = msgspec.field(default_factory=list)
    left: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, part: DrillPart, moved: int) -> None:
        self.moved += moved
        self.parts.append(part)
        self.seconds = time.monotonic() - self.began


class Drill(msgspec.Struct, frozen=True):
    """A drill of the backup ``key`` of ``dataset``, restored to ``pool``."""

    dataset: str
    key: str
    pool: str

    @property
    def scratch(self) -> str:
        return drill_scratch.scratch_of(self.pool, self.key)

    # --- what speaks against it ---------------------------------------------------------------------------------------
    def check_place(self, needed: int, facts: Facts) -> Iterator[Reason]:
        """The reasons against the pool, of which ``needed`` bytes are used for a while."""
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
        yield from self.check_room(needed, self.free(facts))

    def free(self, facts: Facts) -> int:
        """The bytes that it may use in its pool."""
        return drill_scratch.room(facts.dataset(self.pool), facts.dataset(self.scratch))

    def check_room(self, needed: int, free: int) -> Iterator[Reason]:
        if needed > free:
            yield Reason(
                "drill-no-room",
                "The test needs about {needed} for a while, and {pool} has {free} for it: a tenth of the "
                "pool stays free. "
                "Make room there, or add a larger pool.",
                needed=size_text(needed),
                pool=self.pool,
                free=size_text(free),
            )

    # --- the plan -----------------------------------------------------------------------------------------------------
    def steps(self, run: DrillRun, keys: StoredKeys, restores: Iterable[Step], facts: Facts) -> tuple[Step, ...]:
        """The steps around those that restore."""
        create = drill_scratch.create_argv(self.scratch, self.free(facts))
        return (
            Step(
                "prepare",
                Message("Make a folder to restore to"),
                shlex.join(create),
                partial(self.prepare, run, create),
                (self.scratch,),
            ),
            *restores,
            Step(
                "compare",
                Message("Compare every file"),
                Message("mount -t zfs -o ro SNAPSHOT, seen by nobody else"),
                self.tidily(partial(self.compare_all, run, keys)),
                (self.scratch,),
            ),
            Step(
                "remove",
                Message("Remove what was restored"),
                f"zfs destroy -r -- {self.scratch}",
                self.remove,
                (self.scratch,),
            ),
        )

    def count_text(self, count: int) -> str:
        """``tank/photos and 2 folders below it are``"""
        if count == 1:
            return Message("{dataset} is", dataset=self.dataset)
        return Message("{dataset} and {number} folders below it are", dataset=self.dataset, number=count - 1)

    def warnings(self, raw: Iterable[Dataset], volumes: Iterable[Dataset], keys: StoredKeys) -> Iterator[str]:
        """What will not be compared. ``raw``: the originals that come back encrypted."""
        if closed := [one.name for one in raw if not keys.should_have(one)]:
            yield Message(
                "Restored, but not compared, since this box does not store the key: {closed}.",
                closed=names_text(closed, NAMED),
            )
        if found := [one.name for one in volumes]:
            yield Message(
                "Restored, but not compared, since volumes have no files: {volumes}.", volumes=names_text(found, NAMED)
            )

    # --- the steps ----------------------------------------------------------------------------------------------------
    def tidily(self, act: Callable[[Work], None]) -> Callable[[Work], None]:
        """``act``, after whose failure nothing of the drill stays.
        What is stopped on purpose is cleaned up by ``clean_up``."""

        def run(work: Work) -> None:
            try:
                act(work)
            except Cancelled:
                raise
            except Exception:
                with noted_if_it_stays(self.scratch, work):
                    drill_scratch.remove_scratch(self.scratch, work)
                raise

        return run

    def prepare(self, run: DrillRun, create: Sequence[str], work: Work) -> None:
        """Begin anew: what an interrupted drill left is of another moment."""
        drill_scratch.remove_scratch(self.scratch, work)
        run.began = time.monotonic()
        command.run(create, timeout=300)

    def compare_all(self, run: DrillRun, keys: StoredKeys, work: Work) -> None:
        """Compare every part, note what was found, and fail where something is different."""
        result, skipped, gone = TreeComparison(), list(run.left), list[str]()
        for part in run.parts:
            why = self.compare_part(part, keys, result, gone, work)
            if why:
                skipped.append(part.original.name)
                work.note(Message("{one} was restored, but not compared: {why}.", one=part.original.name, why=why))
        found = Rehearsal(
            int(run.seconds),
            len(run.parts),
            run.moved,
            result.files,
            result.size,
            result.different,
            tuple(result.differences[:NAMED]),
            tuple(skipped[:NAMED]),
            tuple(gone[:NAMED]),
            max(0, len(skipped) - NAMED),
            max(0, len(gone) - NAMED),
        )
        told = Message(
            "{moved} restored in {duration_text}; {files} files compared, {size}.",
            moved=size_text(run.moved),
            duration_text=duration_text(int(run.seconds)),
            files=result.files,
            size=size_text(result.size),
        )
        failure = Message(
            "Differences between {dataset} and what its copy restores ({different})",
            different=result.different,
            dataset=self.dataset,
        )
        conclude(result, work, (result_line(PREFIX, found), told), failure)

    def compare_part(
        self, part: DrillPart, keys: StoredKeys, result: TreeComparison, gone: list[str], work: Work
    ) -> str:
        """Compare one restored dataset; why it could not be, empty where it was."""
        one, restored = part.original, part.restored
        if restored.is_volume:
            return Message("a volume has no files")
        if restored.raw:
            try:
                keys.unlock(one, restored.target)
            except Failed as error:
                return explain_error(error)
        originals = [found.name for found in list_snapshots.list_snapshots([one.name]) if found.guid == restored.guid]
        with ExitStack() as stack:
            try:
                back = stack.enter_context(private_mount.root_of(f"{restored.target}@{restored.short}"))
            except Failed as error:
                return explain_error(error)
            for other in (*originals, *([part.other] if part.other else ())):
                try:
                    with private_mount.root_of(other) as here:
                        if other == part.other:
                            gone.append(one.name)
                        compare_opened(one.name, here, back, Sample(), result, work)
                        return ""
                except Failed as error:
                    work.note(explain_error(error))
                except OSError as error:
                    return error.strerror or Message("it cannot be read")
        if part.other:
            return Message("neither the original nor the copy can be opened")
        return Message("the original no longer has that moment, or cannot be opened")

    def remove(self, work: Work) -> None:
        drill_scratch.remove_scratch(self.scratch, work)

    def recovery_hint(self, facts: Facts) -> str:
        """What an interrupted drill has left, and what to do."""
        if facts.dataset(self.scratch):
            return Message(
                "{scratch} is left over, and Larder removes it. Start the test again to get a result.",
                scratch=self.scratch,
            )
        return Message("Nothing of it is left. Start the test again to get a result.")


class DrillOperation:
    """What the two operations share that carry a drill out, beside their base."""

    __slots__ = ()

    settled: ClassVar[str] = Message(
        "Larder was interrupted meanwhile. What was restored for the test has been removed."
    )

    dataset: str
    key: str
    pool: str

    @property
    def drill(self) -> Drill:
        return Drill(self.dataset, self.key, self.pool)

    # --- after an interruption ----------------------------------------------------------------------------------------
    def probe(self, step: str, facts: Facts) -> bool:
        return False  # an interrupted drill has proved nothing; the next begins anew

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return self.drill.recovery_hint(facts)

    def clean_up(self, work: Work) -> None:
        self.drill.remove(work)
