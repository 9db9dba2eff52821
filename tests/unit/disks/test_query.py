"""Real processes: one that hangs here outlives its kill because the kill is powerless, as it is against the kernel."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance import command
from appliance.disks import disk_request, health, query, selftest, smart, standby
from appliance.errors import Failed
from appliance.system import paths

pytestmark = pytest.mark.usefixtures("folders")
ANSWER = '{"smart_status": {"passed": true}}'
LONG = 60  # a bound for a failing test


class Box:
    """Disks as files, and a smartctl that answers unless its last word, the disk, holds another program for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def disk(self, name: str, does: str = f"echo '{ANSWER}'") -> str:
        path = self.folder / name
        path.write_text(does)
        return str(path)

    def let_go(self) -> None:
        """The kernel lets go of what hung."""
        for process in self.started:
            process.kill()
            process.wait(LONG)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    made = Box(tmp_path / "disks")
    made.folder.mkdir()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "smartctl").write_text('#!/bin/sh\nfor disk; do :; done\n. "$disk"\n')
    (tools / "smartctl").chmod(0o700)
    monkeypatch.setitem(command.ENVIRONMENT, "PATH", f"{tools}:{command.ENVIRONMENT['PATH']}")
    start = subprocess.Popen

    def seen(*args: Any, **more: Any) -> subprocess.Popen[bytes]:
        made.started.append(start(*args, **more))
        return made.started[-1]

    monkeypatch.setattr(subprocess, "Popen", seen)
    yield made
    made.let_go()


@pytest.fixture
def powerless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is killed ends."""
    monkeypatch.setattr(os, "killpg", lambda _group, _signal: None)
    monkeypatch.setattr(command, "SECONDS_TO_DIE", 0.05)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever time is asked for, it is over soon for what hangs."""
    own = query.query_disk
    monkeypatch.setattr(
        query, "query_disk", lambda path, argv, timeout: own(path, argv, timeout=0.3 if "hangs" in path else LONG)
    )


def ask(path: str, timeout: float = LONG) -> str:
    return query.query_disk(path, ["smartctl", path], timeout=timeout).stdout.strip()


HANG = "exec sleep 1000"


def test_a_disk_is_not_asked_again_while_an_earlier_question_hangs_and_at_once_when_that_has_ended(box, powerless):
    disk = box.disk("hangs", HANG)
    with pytest.raises(query.Silent) as first:
        ask(disk, 0.3)
    assert isinstance(first.value.__cause__, command.CommandTimedOut)
    assert first.value.__cause__.pid == box.started[0].pid
    for _ in range(20):
        with pytest.raises(query.Silent, match="has not answered since") as again:
            ask(disk)
        assert str(again.value) == str(first.value)
    assert len(box.started) == 1
    box.let_go()
    box.disk("hangs")
    assert ask(disk) == ANSWER
    assert len(box.started) == 2


def test_a_child_of_what_was_ended_keeps_the_disk_from_being_asked_as_well(box):
    (box.folder / "pid").touch()
    disk = box.disk("hangs", f"setsid sh -c 'echo $$ > {box.folder}/pid; exec sleep 1000' & wait")
    with pytest.raises(query.Silent):
        ask(disk, 1)
    assert box.started[0].wait(LONG) < 0
    with pytest.raises(query.Silent):
        ask(disk)
    os.kill(int((box.folder / "pid").read_text()), 9)
    box.disk("hangs")
    answers = soon(lambda: ask(disk))
    assert answers == ANSWER


def soon(what: Callable[[], str]) -> str:
    """What it gives once it gives anything: nobody waits for a grandchild's end."""
    end = time.monotonic() + LONG
    while True:
        try:
            return what()
        except query.Silent:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_one_that_hangs_keeps_no_other_from_being_asked(box, powerless, impatient):
    hung, well = box.disk("hangs", HANG), box.disk("works")
    for _ in range(3):
        found = disk_request.ask_each([hung, well], disk_request.query_smart, lambda _word: None)
        reading = smart.read_smart(found[hung])
        assert not reading.answered
        assert not reading.asleep
        assert reading.message.startswith("It has not answered since ")
        assert smart.read_smart(found[well]).answered
    assert [process.args[-1] for process in box.started] == [hung, well, well, well]
    verdict = health.judge_health(reading, {})
    assert (verdict.state, verdict.text) == ("unknown", reading.message)


def test_nothing_else_is_begun_at_a_disk_that_hangs(box, powerless, impatient):
    disk = box.disk("hangs", HANG)
    disk_request.query_smart(disk)
    assert "has not answered since" in standby.set_timer(disk, 20)
    with pytest.raises(Failed, match="has not answered since"):
        selftest.read_selftests(disk)
    assert len(box.started) == 1


def test_who_asks_a_disk_that_is_being_asked_waits_for_his_turn(box):
    gate = box.folder / "gate"
    os.mkfifo(gate)
    disk = box.disk("slow", f"read word < {gate}; echo $word")
    answers: list[str] = []
    both = [threading.Thread(target=lambda: answers.append(ask(disk))) for _ in range(2)]
    for one in both:
        one.start()
    for word in ("first", "second"):
        gate.write_text(f"{word}\n")
        while word not in answers:
            time.sleep(0.02)
    for one in both:
        one.join(LONG)
    assert answers == ["first", "second"]
    assert (paths.ASKED / "slow").read_bytes() == b""


def test_it_has_not_answered_since_it_was_first_asked_in_vain(box, monkeypatch):
    disk, told = box.disk("hangs", HANG), []
    for hours in range(3):
        now = datetime(2024, 5, 3, 14, 5, tzinfo=UTC) + timedelta(hours=hours)
        monkeypatch.setattr(query, "datetime", type("Clock", (), {"now": staticmethod(lambda _zone, now=now: now)}))
        monkeypatch.setattr(query, "box_zone", lambda: UTC)
        with pytest.raises(query.Silent) as silent:
            ask(disk, 0.3)
        told.append(str(silent.value))
    assert told == ["It has not answered since 3 May 2024 at 14:05."] * 3
    assert len(box.started) == 3  # each was ended, so it was asked anew


def test_what_an_agent_left_behind_that_was_ended_itself_is_waited_for_no_longer_than_its_time(box):
    disk = box.disk("works")
    with query.lock_disk(disk) as handle:
        query.write_note(handle, query.Note(datetime.now(UTC), time.monotonic() + 0.5))
        with pytest.raises(query.Silent):
            ask(disk)
    assert box.started == []
    assert ask(disk) == ANSWER


@pytest.mark.parametrize("text", [b"half {", b"{}", b"\xff", b'{"since": 1, "until": "x"}'])
def test_a_note_that_is_none_keeps_no_disk_from_being_asked(box, text):
    paths.ASKED.mkdir(parents=True)
    (paths.ASKED / "works").write_bytes(text)
    assert ask(box.disk("works")) == ANSWER


def test_a_disk_that_is_not_there_leaves_nothing_behind(box):
    query.query_disk(str(box.folder / "gone"), ["true"], timeout=LONG)
    assert not paths.ASKED.exists()
