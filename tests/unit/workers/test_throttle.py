"""One reading at a time, and nobody is told of a reading that began before they asked."""

from __future__ import annotations

import threading

from workers.throttle import Coalescer


class Slow:
    """Work that begins when it is let to and notes how often it ran."""

    def __init__(self) -> None:
        self.runs = 0
        self.inside = threading.Event()
        self.go = threading.Event()
        self.at_once = 0
        self.most_at_once = 0

    def __call__(self) -> None:
        self.runs += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.inside.set()
        assert self.go.wait(10)
        self.at_once -= 1


def test_many_who_ask_meanwhile_share_the_next_run():
    work = Slow()
    turns = Coalescer(work)
    first = threading.Thread(target=turns.run_fresh)
    first.start()
    assert work.inside.wait(10)
    others = [threading.Thread(target=turns.run_fresh) for _ in range(5)]
    for other in others:
        other.start()
    work.go.set()
    for thread in [first, *others]:
        thread.join(10)
    assert not any(thread.is_alive() for thread in [first, *others])
    # A late starter may need a third; five callers never need five.
    assert 2 <= work.runs <= 3
    assert work.most_at_once == 1


def test_who_only_wants_it_soon_does_not_queue_up():
    work = Slow()
    turns = Coalescer(work)
    first = threading.Thread(target=turns.run_fresh)
    first.start()
    assert work.inside.wait(10)
    waiting = threading.Thread(target=turns.request_run)
    waiting.start()
    while not turns.asked:
        pass
    turns.request_run()  # returns at once: the one that waits will do
    work.go.set()
    first.join(10)
    waiting.join(10)
    assert work.runs == 2


def test_a_run_that_fails_lets_the_next_begin():
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError

    turns = Coalescer(work)
    try:
        turns.run_fresh()
    except ValueError:
        pass
    turns.run_fresh()
    assert len(calls) == 2
