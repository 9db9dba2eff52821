"""Threads beside the clock: one of a name at a time, and a stuck one is seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from workers import guard


@pytest.fixture
def background(monkeypatch):
    """The real thing, without the databases: those of a test belong to its own thread."""
    from workers import background

    monkeypatch.undo()
    monkeypatch.setattr(guard, "run_guarded", lambda _name, work: work())
    monkeypatch.setattr(background, "_running", {})
    return background


def joined(name: str) -> None:
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(60)


def held() -> tuple[threading.Event, Callable[[], object]]:
    released = threading.Event()
    return released, lambda: released.wait(60)


def test_work_of_one_name_is_under_way_once_and_others_go_on(background):
    released, work = held()
    done = threading.Event()
    assert background.start_thread("run-mail", work)
    assert not background.start_thread("run-mail", work)
    assert background.start_thread("run-facts", done.set)
    assert done.wait(60)
    released.set()
    joined("run-mail")
    assert background.start_thread("run-mail", lambda: None)


def test_work_that_breaks_off_can_be_started_again(background, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _problem: None)

    def fail() -> None:
        raise RuntimeError("no")

    assert background.start_thread("run-mail", fail)
    joined("run-mail")
    assert background.start_thread("run-mail", lambda: None)
    joined("run-mail")


def test_no_thread_left_is_told_and_tried_again(background, monkeypatch):
    def none_left(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none_left)
        with pytest.raises(RuntimeError):
            background.start_thread("run-mail", lambda: None)
    assert background.start_thread("run-mail", lambda: None)


def test_work_that_is_under_way_for_too_long_is_stuck(background):
    released, work = held()
    background.start_thread("run-alerts", work)
    assert background.stuck_thread() == ""
    background._running["run-alerts"] = time.monotonic() - background.LIMITS["run-alerts"] - 1
    assert background.stuck_thread() == "run-alerts"
    released.set()
    joined("run-alerts")
    assert background.stuck_thread() == ""
