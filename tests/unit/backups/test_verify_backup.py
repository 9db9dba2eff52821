"""Comparing a backup with its originals: what is opened and locked again, what is left out, and
what is never called equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from appliance import command
from appliance.backups import verify_backup
from appliance.backups.compare import TreeComparison
from appliance.backups.verify_backup import PREFIX, Comparison, VerifyBackup
from appliance.datasets.encryption import key_store
from appliance.errors import Failed
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Property
from appliance.operation import checked_plan
from appliance.zfs import private_mount
from tests.reasons import expect_refusal
from tests.unit.backups.test_drill import COPY, KEY, SECRET, SECRET_GUID, known
from tests.unit.pools.test_create import Working

SECRET_ORIGINAL = "tank/photos/secret"
RIGHT = "the phrase of the attic"
LOAD, UNLOAD = ["zfs", "load-key", "-L", "prompt", "--", SECRET], ["zfs", "unload-key", "--", SECRET]


class Box:
    """What was run and opened, in turns; only RIGHT opens the encrypted copy."""

    def __init__(self) -> None:
        self.acts: list[Any] = []

    def run(self, argv: Sequence[str], *, given: Any = None, **_more: Any) -> command.Result:
        self.acts.append(list(argv))
        wrong = argv[1] == "load-key" and given != f"{RIGHT}\n"
        return command.Result(tuple(argv), 255 if wrong else 0, "", "", 0.0)

    @contextmanager
    def root_of(self, snapshot: str) -> Iterator[int]:
        self.acts.append(snapshot)
        yield 0


@pytest.fixture
def opened(monkeypatch, tmp_path) -> Box:
    found = Box()
    monkeypatch.setattr(command, "run", found.run)
    monkeypatch.setattr(private_mount, "root_of", found.root_of)
    monkeypatch.setattr(verify_backup, "newest_common", lambda ours, theirs: (f"{ours}@newest", f"{theirs}@newest"))
    monkeypatch.setattr(key_store, "FOLDER", tmp_path)

    def compare(_here: int, _there: int, _sample: Any, result: TreeComparison, _tell: Any) -> None:
        result.entries += 1

    monkeypatch.setattr(verify_backup, "compare_trees", compare)
    return found


def marked() -> Facts:
    """The box stores the key of the encrypted folder, as its mark says."""
    mark = {user_properties.UNLOCK: Property(key_store.box_mark(), "local")}
    facts = known()
    return replace(
        facts,
        datasets=tuple(
            replace(one, properties={**one.properties, **mark}) if one.guid == SECRET_GUID else one
            for one in facts.datasets
        ),
    )


def only(facts: Facts, *names: str, **changes: Any) -> Facts:
    """The same, of the folders only these, each with ``changes``, and all copies."""
    return replace(
        facts,
        datasets=tuple(
            replace(one, **changes) if one.name in names else one
            for one in facts.datasets
            if not one.name.startswith("tank/photos") or one.name in names
        ),
    )


def compare(facts: Facts) -> tuple[Comparison | None, list[str]]:
    work = Working()
    operation = VerifyBackup(dataset="tank/photos", key=KEY, target=COPY)
    try:
        for step in checked_plan(operation, facts).steps:
            step.run(work)
    finally:
        lines = [note.removeprefix(PREFIX) for note in work.notes if note.startswith(PREFIX)]
    return (msgspec.json.decode(lines[0], type=Comparison) if lines else None), work.notes


def test_encrypted_copy_is_opened_with_the_stored_key_compared_and_locked_again(opened):
    key_store.key_path(SECRET_GUID).write_text(RIGHT)
    found, notes = compare(marked())
    assert found and not found.skipped and found.entries == 3
    at = opened.acts.index(LOAD)
    assert opened.acts[at : at + 4] == [LOAD, f"{SECRET_ORIGINAL}@newest", f"{SECRET}@newest", UNLOAD]
    assert RIGHT not in " ".join(notes)


def test_encrypted_copy_is_locked_again_also_where_it_cannot_be_read(opened, monkeypatch):
    key_store.key_path(SECRET_GUID).write_text(RIGHT)

    def fail(*_args: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(verify_backup, "compare_trees", fail)
    with pytest.raises(Failed, match="Nothing could be compared"):
        compare(marked())
    assert opened.acts[-1] == UNLOAD or UNLOAD in opened.acts


@pytest.mark.parametrize("stored", ["", "another phrase"])
def test_copy_whose_key_is_missing_or_wrong_is_named_and_the_others_are_compared(opened, stored):
    if stored:
        key_store.key_path(SECRET_GUID).write_text(stored)
    found, _notes = compare(marked())
    assert found and found.skipped == (SECRET_ORIGINAL,) and found.entries == 2
    assert UNLOAD not in opened.acts


def test_volume_is_named_as_not_compared(opened):
    facts = known()
    (trip,) = (one for one in facts.datasets if one.name == "tank/photos/trip 2019")
    volume = replace(trip, kind="volume")
    found, notes = compare(
        replace(facts, datasets=tuple(volume if one.guid == volume.guid else one for one in facts.datasets))
    )
    assert found and "tank/photos/trip 2019" in found.skipped
    assert any("a volume has no files" in note for note in notes)


def test_parts_that_were_not_compared_are_counted_and_folders_named_before_volumes(opened):
    facts = known()
    (photos,) = (one for one in facts.datasets if one.name == "tank/photos")
    volumes = [replace(photos, name=f"tank/photos/a{at}", guid=900 + at, kind="volume") for at in range(6)]
    found, _notes = compare(replace(facts, datasets=(*facts.datasets, *volumes)))
    assert found and len(found.skipped) == 5 and found.more == 2
    assert found.skipped == (SECRET_ORIGINAL, *(one.name for one in volumes[:4]))


def test_comparison_that_compared_nothing_leaves_no_result(opened, monkeypatch):
    """Otherwise it would read: 0 files, no differences, equal."""
    monkeypatch.setattr(
        verify_backup, "newest_common", lambda *_names: (_ for _ in ()).throw(Failed("no common snapshot"))
    )
    work = Working()
    with pytest.raises(Failed, match="Nothing could be compared"):
        for step in checked_plan(VerifyBackup(dataset="tank/photos", key=KEY, target=COPY), known()).steps:
            step.run(work)
    assert not any(note.startswith(PREFIX) for note in work.notes)
    assert len([note for note in work.notes if "no common snapshot" in note]) == 3


@pytest.mark.parametrize("changes", [{"kind": "volume"}, {"key_status": "unavailable"}])
def test_backup_of_which_nothing_can_be_opened_is_refused_before(changes):
    with expect_refusal("backup-not-comparable"):
        compare(only(known(), "tank/photos", **changes))
