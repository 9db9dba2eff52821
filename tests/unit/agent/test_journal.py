from __future__ import annotations

import fcntl
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.agent import journal
from appliance.agent.journal import AlreadyKnown, Journal, outcome, read_journal
from appliance.errors import Refused
from appliance.message import Message
from appliance.system import paths
from tests.unit.made import JOB, OTHER_JOB

pytestmark = pytest.mark.usefixtures("folders")


def written(*, close: bool = True) -> Journal:
    record = Journal.begin(JOB)
    record.write("began", operation={"kind": "create-pool"}, steps=["erase", "create"])
    record.write("step begun", step="erase")
    record.write("step done", step="erase")
    record.write("step begun", step="create")
    record.write("note", text="half way")
    if close:
        record.close()
    return record


def test_nothing_is_known_of_a_job_never_begun():
    assert journal.read_journal(JOB) is None


def test_a_job_begins_once():
    written()
    with pytest.raises(AlreadyKnown):
        Journal.begin(JOB)


def test_a_job_that_runs_cannot_begin_again():
    record = written(close=False)
    with pytest.raises(AlreadyKnown):
        Journal.begin(JOB)
    record.close()


def test_it_tells_how_far_a_job_came():
    written()
    known = journal.read_journal(JOB)
    assert known is not None
    assert (known.steps, known.begun, known.done) == (("erase", "create"), ("erase", "create"), ("erase",))
    assert (known.unfinished, known.notes, known.ended) == ("create", ("half way",), False)


def test_a_job_whose_process_lives_is_running_and_one_whose_process_died_is_interrupted():
    record = written(close=False)
    assert journal.alive(JOB)
    assert (found := journal.read_journal(JOB)) is not None and found.state == "running"
    record.close()
    assert not journal.alive(JOB)
    assert (found := journal.read_journal(JOB)) is not None and found.state == "interrupted"


def test_the_end_stands_above_everything():
    record = written(close=False)
    record.write("ended", state="done", text="")
    assert (found := journal.read_journal(JOB)) is not None and (found.state, found.ended) == ("done", True)
    record.close()


@given(cut=st.integers(min_value=0, max_value=400))
def test_a_journal_cut_anywhere_by_a_power_cut_can_still_be_read(cut):
    path = journal.file_of(JOB)
    path.unlink(missing_ok=True)
    written()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    known = journal.read_journal(JOB)
    assert known is not None
    assert known.state == "interrupted"
    assert set(known.done) <= set(known.begun) <= {"erase", "create"}


def test_what_follows_half_a_line_begins_on_a_line_of_its_own():
    written()
    path = journal.file_of(JOB)
    path.write_bytes(path.read_bytes() + b'{"at": "2026", "entry": "step do')
    with journal.taken_over(JOB) as record:
        assert record is not None
        record.write("ended", state="interrupted", text="so far")
    known = journal.read_journal(JOB)
    assert known is not None
    assert (known.state, known.text) == ("interrupted", "so far")


@pytest.mark.parametrize("line", [b"7", b"null", b"[]", b'"x"', b"\xff\xfe", b"", b'{"entry": "of tomorrow"}', b"{}"])
def test_a_line_that_it_does_not_know_is_passed_over(line):
    written()
    path = journal.file_of(JOB)
    path.write_bytes(line + b"\n" + path.read_bytes())
    known = journal.read_journal(JOB)
    assert known is not None
    assert known.done == ("erase",)


def test_nobody_takes_over_a_job_that_lives():
    record = written(close=False)
    with journal.taken_over(JOB) as other:
        assert other is None
    record.close()


def test_only_one_takes_over_a_job_that_died():
    written()
    with journal.taken_over(JOB) as first, journal.taken_over(JOB) as second:
        assert first is not None
        assert second is None


def test_a_job_settled_between_making_and_locking_its_journal_does_not_run(monkeypatch):
    real = fcntl.flock
    done: list[bool] = []

    def late(handle: int, how: int) -> None:
        if not done:
            done.append(True)
            with journal.taken_over(JOB) as settler:
                assert settler is not None
                settler.write("ended", state="interrupted", text="")
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(AlreadyKnown):
        Journal.begin(JOB)
    assert (found := journal.read_journal(JOB)) is not None and found.state == "interrupted"


@pytest.mark.parametrize("job", ["", "..", "../../etc/passwd", "a/b", JOB + "\n", JOB.upper(), JOB + ".jsonl", "-rf"])
def test_an_id_that_is_none_names_no_file(job):
    for ask in (journal.file_of, journal.read_journal, Journal.begin):
        with pytest.raises(Refused):
            ask(job)


def test_each_line_is_on_the_disk_before_anything_goes_on(monkeypatch):
    synced: list[bytes] = []
    monkeypatch.setattr("os.fsync", lambda _handle: synced.append(journal.file_of(JOB).read_bytes()))
    record = Journal.begin(JOB)
    for step in ("one", "two"):
        record.write("step begun", step=step)
        assert synced[-1] == journal.file_of(JOB).read_bytes()
        assert step.encode() in synced[-1]
    record.close()


def test_a_journal_is_for_root_alone():
    written()
    assert journal.file_of(JOB).stat().st_mode & 0o777 == 0o600


def test_each_line_says_when():
    written()
    for line in journal.file_of(JOB).read_text().splitlines():
        assert json.loads(line)["at"].endswith("+00:00")


def ended(job: str, age: int) -> None:
    record = Journal.begin(job)
    record.write("ended", state="done", text="")
    record.close()
    os.utime(journal.file_of(job), (age, age))


def test_the_oldest_journals_are_forgotten_first(monkeypatch):
    monkeypatch.setattr(journal, "KEPT", 1)
    for age, job in ((100, JOB), (200, OTHER_JOB)):
        ended(job, age)
    journal.prune()
    assert [path.name for path in paths.JOURNALS.iterdir()] == [f"{OTHER_JOB}.jsonl"]


def test_prune_keeps_the_journal_of_a_running_job(monkeypatch):
    monkeypatch.setattr(journal, "KEPT", 0)
    record = Journal.begin(JOB)
    record.write("began", operation={}, steps=["zero"])
    ended(OTHER_JOB, 200)
    journal.prune()
    assert (found := journal.read_journal(JOB)) is not None and found.state == "running"
    assert journal.read_journal(OTHER_JOB) is None
    record.close()


def test_prune_keeps_the_journal_of_an_interrupted_job_until_it_is_settled(monkeypatch):
    monkeypatch.setattr(journal, "KEPT", 0)
    record = Journal.begin(JOB)
    record.write("step begun", step="zero")
    record.close()
    journal.prune()
    assert (found := journal.read_journal(JOB)) is not None and found.begun == ("zero",)


def test_messages_of_a_journal_keep_their_templates_beside_the_english_text():
    record = written(close=False)
    note, end = Message("Unmounted {top}", top="tank"), Message("{pool} is destroyed.", pool="tank")
    record.write("note", text=note)
    record.write("ended", state="done", text=end)
    record.close()
    known = read_journal(JOB)
    assert known is not None
    assert (known.text, known.notes) == ("tank is destroyed.", ("half way", "Unmounted tank"))
    assert known.messages == {str(note): note.as_json(), str(end): end.as_json()}
    assert outcome(known)["messages"] == known.messages


def test_journal_of_an_earlier_version_has_no_messages():
    written()
    known = read_journal(JOB)
    assert known is not None
    assert known.messages == {}
    assert outcome(known)["notes"] == ["half way"]
