"""Trying keys on encrypted copies: which are tried, what is told, and that no key is written anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from appliance import command
from appliance.backups.check_keys import PREFIX, CheckBackupKeys, KeyCheck
from appliance.backups.discard_received import DiscardReceived, half_received, received_size
from appliance.backups.verify_backup import LONGEST_NOTE, Comparison, result_line
from appliance.datasets.encryption import key_store
from appliance.errors import Failed
from appliance.facts.box import Facts, Pool
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Property
from appliance.operation import checked_plan
from tests.reasons import expect_refusal
from tests.unit.backups.test_drill import COPY, KEY, SECRET, SECRET_GUID, known
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working

RIGHT, WRONG = "the phrase of the attic", "another phrase"
ARGV = ["zfs", "load-key", "-n", "-L", "prompt", "--", SECRET]


class Typing(Working):
    """Somebody has typed this."""

    typed = RIGHT

    def secret(self) -> str:
        return self.typed


@pytest.fixture
def tried(monkeypatch, tmp_path) -> list[tuple[list[str], Any]]:
    """The keys that were tried, each with its command; only RIGHT opens."""
    found: list[tuple[list[str], Any]] = []

    def run(argv: Sequence[str], *, given: Any = None, **_more: Any) -> command.Result:
        found.append((list(argv), given))
        return command.Result(tuple(argv), 0 if given == f"{RIGHT}\n" else 255, "", "Incorrect key provided", 0.0)

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(key_store, "FOLDER", tmp_path)
    return found


def check(*, typed: bool = False) -> CheckBackupKeys:
    return CheckBackupKeys(dataset="tank/photos", key=KEY, target=COPY, typed=typed)


def run(operation: CheckBackupKeys, work: Working) -> KeyCheck:
    try:
        for step in checked_plan(operation, known()).steps:
            step.run(work)
    finally:
        (line,) = [note.removeprefix(PREFIX) for note in work.notes if note.startswith(PREFIX)]
    return msgspec.json.decode(line, type=KeyCheck)


def test_stored_key_is_tried_without_loading_it(tried):
    key_store.key_path(SECRET_GUID).write_text(RIGHT)
    work = Working()
    assert run(check(), work) == KeyCheck(1, 1)
    assert tried == [(ARGV, f"{RIGHT}\n")]
    assert RIGHT not in " ".join(work.notes)


def test_stored_key_that_does_not_open_the_copy_fails_with_its_folder(tried):
    key_store.key_path(SECRET_GUID).write_text(WRONG)
    work = Working()
    with pytest.raises(Failed, match="does not open the copy of tank/photos/secret"):
        run(check(), work)
    assert any('"wrong":["tank/photos/secret"]' in note for note in work.notes)


def test_without_a_stored_key_nothing_is_claimed(tried):
    assert run(check(), Working()) == KeyCheck(0, 1, (), ("tank/photos/secret",))
    assert tried == []


@pytest.mark.parametrize(("typed", "opened"), [(RIGHT, 1), (WRONG, 0)])
def test_typed_key_is_tried_and_a_wrong_one_is_nobodys_fault(tried, typed, opened):
    work = Typing()
    work.typed = typed
    if opened:
        assert run(check(typed=True), work) == KeyCheck(1, 1)
    else:
        with pytest.raises(Failed, match="This key does not open"):
            run(check(typed=True), work)
        assert any('"opened":0' in note and '"wrong":[]' in note for note in work.notes)
    assert typed not in " ".join(work.notes) + " ".join(word for argv, _given in tried for word in argv)


def test_backup_without_encrypted_folders_has_no_key_to_try():
    facts = known()
    plain = tuple(one for one in facts.datasets if "secret" not in one.name)
    with expect_refusal("backup-not-encrypted"):
        checked_plan(check(), replace(facts, datasets=plain))


# --- results in a log -------------------------------------------------------------------------------------------------
def test_result_with_the_longest_paths_can_be_read_again():
    path = "ä\x00" * 2000
    found = Comparison(1, 2, 3, 4, 5, (path,) * 5, ("tank/" + "x" * 240,) * 5)
    line = result_line("compared ", found)
    assert len(line) <= LONGEST_NOTE
    again = msgspec.json.decode(line.removeprefix("compared "), type=Comparison)
    assert again.different == 5 and len(again.differences) == 5


# --- what is half received ------------------------------------------------------------------------------------------
TOKEN = {"receive_resume_token": Property("1-abc-def", "none")}
MARK = CopyMark(5, raw=False).text


def box(**changes: Any) -> Facts:
    copy = dataset("safe/backups/a", guid=5, copy_of=MARK, **{"properties": TOKEN, **changes})
    child = dataset("safe/backups/a/b", guid=6, copy_of=MARK, used=300)
    grandchild = dataset("safe/backups/a/b/c", guid=7, copy_of=MARK, used=200)
    return Facts(pools=(Pool("safe", 2000, "ONLINE"),), datasets=(dataset("safe", guid=2), copy, child, grandchild))


def test_half_received_increment_is_what_belongs_to_no_folder_below():
    facts = box(used_by_children=20_300)
    (one,) = half_received("safe/backups/a", facts)
    assert (one.name, received_size(one, facts)) == ("safe/backups/a", 20_000)


def test_half_received_first_copy_counts_as_written():
    facts = box(used_by_children=300, written=7000)
    assert received_size(half_received("safe/backups/a", facts)[0], facts) == 7000


def test_discarding_keeps_what_is_complete_and_is_done_once():
    facts, operation = box(used_by_children=20_300), DiscardReceived(copy="safe/backups/a", guid=5)
    plan = checked_plan(operation, facts)
    assert [step.command_text for step in plan.steps] == ["zfs receive -A safe/backups/a"]
    assert plan.losses and not operation.needs_proof(facts, plan)
    assert not operation.probe("discard", facts)
    assert operation.probe("discard", box(properties={}))
    with expect_refusal("nothing-received"):
        checked_plan(operation, box(properties={}))


@pytest.mark.parametrize(
    ("copy", "guid", "code"),
    [("safe/backups/a", 99, "folder-missing"), ("safe/backups", 9, "not-a-copy"), ("tank/a", 9, "not-a-copy")],
)
def test_only_a_copy_can_be_named(copy, guid, code):
    facts = box()
    more = dataset(copy, guid=9, properties=TOKEN)
    with expect_refusal(code):
        checked_plan(DiscardReceived(copy=copy, guid=guid), replace(facts, datasets=(*facts.datasets, more)))


def test_pool_that_has_stopped_is_left_alone():
    with expect_refusal("pool-stopped"):
        checked_plan(
            DiscardReceived(copy="safe/backups/a", guid=5), replace(box(), pools=(Pool("safe", 2000, "SUSPENDED"),))
        )
