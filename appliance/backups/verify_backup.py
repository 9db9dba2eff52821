"""Compare a backup with its originals: the newest snapshot that both have, folder by folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from appliance import names
from appliance.backups import tasks
from appliance.backups.base import BackupOperation
from appliance.backups.compare import Sample, TreeComparison, compare_trees
from appliance.backups.stored_keys import StoredKeys
from appliance.errors import Failed, LarderError, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import and_more, size_text
from appliance.message import Message, plain_text
from appliance.operation import Plan, Step, Work, never
from appliance.zfs import list_snapshots, private_mount

LONGEST_CYCLE = 52
SHOWN = 5  # differences, and folders that were left out, that a result names
LONGEST_NOTE = 1900  # of the 2000 characters that a log keeps of a line
SHORTER = (200, 100, 50, 20)  # characters of each text in a note, tried one after the other
PREFIX = "compared "  # of the note that holds the result, for whoever keeps it


class Comparison(msgspec.Struct, frozen=True):
    """What a comparison found, as it stands in the job's log.
    ``skipped``: datasets that could not be opened, then volumes, of which ``more`` are not named."""

    files: int
    size: int
    total: int
    entries: int
    different: int
    differences: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    more: int = 0


def result_line(prefix: str, found: msgspec.Struct) -> str:
    """A result as a line of a job's log that can be read again: long paths are cut, so that the line is not."""
    for most in SHORTER:
        cut = {
            key: tuple(text if len(text) <= most else f"…{text[-most:]}" for text in value)
            for key in found.__struct_fields__
            if isinstance(value := getattr(found, key), tuple)
        }
        line = f"{prefix}{msgspec.json.encode(msgspec.structs.replace(found, **cut), enc_hook=plain_text).decode()}"
        if len(line) <= LONGEST_NOTE:
            break
    return line


def conclude(result: TreeComparison, work: Work, notes: Iterable[str], failure: str) -> None:
    """Note every difference, then ``notes``, and raise Failed with ``failure`` where something is different."""
    for line in result.differences:
        work.note(Message("Different: {line}", line=line))
    for note in notes:
        work.note(note)
    if result.different:
        raise Failed(failure, and_more(result.differences[:SHOWN], result.different - SHOWN, "; "))


class VerifyBackup(BackupOperation, tag="verify-backup"):
    """Compare every name and attribute, and the contents of a part of the files:
    ``turn`` of ``cycle``, and what changed since ``since`` (seconds since 1970; 0: no such files)."""

    needs_proof = never

    turn: int = 0
    cycle: int = 1
    since: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (1 <= self.cycle <= LONGEST_CYCLE and 0 <= self.turn < self.cycle and 0 <= self.since < 2**40):
            raise Refused(Reason("sample-invalid", "That part of a backup cannot be compared.", field="cycle"))

    @property
    def title(self) -> str:
        return Message("Compare the backup of {dataset} with the originals", dataset=self.dataset)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if facts.dataset(self.target) is None:
            yield Reason("backup-no-copy", "{dataset} has no copy yet.", dataset=self.dataset)
            return
        if not comparable(self.copied_folders(facts), facts):
            yield Reason(
                "backup-not-comparable",
                "Nothing of {dataset} can be compared: volumes have no files, and an encrypted folder can be "
                "compared only while it is unlocked and this box stores its key. Test a restore instead.",
                dataset=self.dataset,
            )

    def plan(self, facts: Facts) -> Plan:
        dataset, task, _pool = self.find_all(facts)
        tree = tasks.members(dataset, task, facts)
        targets = self.targets(dataset, task, facts)
        parts = [(one, facts.dataset(targets[one.guid])) for one in tree]
        keys = StoredKeys.of([(one, copy) for one, copy in parts if copy], facts)
        part = (
            Message("every file")
            if self.cycle == 1
            else Message("one file in {cycle}, and those that changed lately,", cycle=self.cycle)
        )
        return Plan(
            summary=Message(
                "Every name in the newest copy is compared with the original, and {part} is read on both sides.",
                part=part,
            ),
            steps=(
                Step(
                    "compare",
                    Message("Compare {dataset} with {target}", dataset=self.dataset, target=self.target),
                    Message("mount -t zfs -o ro SNAPSHOT, for both sides, seen by nobody else"),
                    partial(self.compare_all, parts, keys),
                    (self.target,),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "datasets": [one.guid for one in tree]},
            undo=Message("Nothing is changed."),
        )

    def compare_all(self, parts: list[tuple[Dataset, Dataset | None]], keys: StoredKeys, work: Work) -> None:
        """Compare every part. One that cannot be opened keeps no other from being compared; where none could be,
        nothing is noted as a result."""
        result, skipped = TreeComparison(), list[Dataset]()
        for original, copy in parts:
            try:
                compare_part(original, copy, keys, Sample(self.turn, self.cycle, float(self.since)), result, work)
            except (Failed, OSError) as error:
                why = (
                    explain_error(error)
                    if isinstance(error, LarderError)
                    else error.strerror or Message("it cannot be read")
                )
                skipped.append(original)
                work.note(Message("{original} was not compared: {why}.", original=original.name, why=why))
        if len(skipped) == len(parts):
            raise Failed(Message("Nothing could be compared"), Message("The reason is given above for each folder."))
        left = [one.name for one in sorted(skipped, key=lambda one: one.kind == "volume")]
        found = Comparison(
            result.files,
            result.size,
            result.total,
            result.entries,
            result.different,
            tuple(result.differences[:SHOWN]),
            tuple(left[:SHOWN]),
            max(0, len(left) - SHOWN),
        )
        told = Message(
            "{entries} names compared; {files} files read on both sides, {size}.",
            entries=result.entries,
            files=result.files,
            size=size_text(result.size),
        )
        failure = Message(
            "Differences between {dataset} and its copy ({different})", different=result.different, dataset=self.dataset
        )
        conclude(result, work, (result_line(PREFIX, found), told), failure)

    def probe(self, step: str, facts: Facts) -> bool:
        return False  # whether files were compared can be seen nowhere

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Nothing was changed. Start the comparison again.")


def comparable(parts: Iterable[tuple[Dataset, Dataset]], facts: Facts) -> list[str]:
    """Those of the originals with their copies that can be opened on both sides, as far as every process can tell."""
    parts = list(parts)
    keys = StoredKeys.of(parts, facts)
    return [
        one.name
        for one, copy in parts
        if one.kind == "filesystem" and not one.locked and (not copy.locked or keys.should_have(one))
    ]


def compare_part(
    original: Dataset, copy: Dataset | None, keys: StoredKeys, sample: Sample, result: TreeComparison, work: Work
) -> None:
    """Compare a dataset with its copy, which is unlocked meanwhile where this box stores the key.
    Raises Failed, OSError."""
    if original.kind == "volume":
        raise Failed(Message("a volume has no files"))
    if copy is None:
        raise Failed(Message("it has no copy yet"))
    ours, theirs = newest_common(original.name, copy.name)
    with keys.opened(original, copy), private_mount.root_of(ours) as here, private_mount.root_of(theirs) as there:
        compare_opened(original.name, here, there, sample, result, work)


def compare_opened(name: str, here: int, there: int, sample: Sample, result: TreeComparison, work: Work) -> None:
    """Compare two opened folders, saying how far it is. Raises Cancelled."""
    began, entries = result.size, result.entries
    total = result.total

    def tell(now: TreeComparison) -> None:
        whole = now.total - total
        percent = min(99, (now.size - began) * 100 * sample.cycle // max(whole, 1)) if whole else 0
        work.progress(
            percent,
            Message(
                "{name}: {files} files, {size} read on both sides",
                name=name,
                files=now.files,
                size=size_text(now.size),
            ),
        )
        work.stop_if_asked()

    def quick(now: TreeComparison) -> None:
        if (now.entries - entries) % 100 == 0 or now.size != began:
            tell(now)

    compare_trees(here, there, sample, result, quick)


def newest_common(original: str, copy: str) -> tuple[str, str]:
    """The newest snapshot that a dataset and its copy both have, by their names. Raises Failed."""
    theirs = {one.guid: one.name for one in list_snapshots.list_snapshots([copy])}
    found = [one for one in list_snapshots.list_snapshots([original]) if one.guid in theirs]
    if not found:
        raise Failed(
            Message("{original} and its copy have no snapshot in common", original=original),
            Message("Run the backup first."),
        )
    newest = max(found, key=lambda one: one.txg)
    names.existing_snapshot(newest.name)
    return newest.name, theirs[newest.guid]
