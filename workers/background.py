"""Threads for readings, alert rules and mail, so that these wait neither for a job nor for Redis.

Each thread ends with its work and closes its database connections.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import connections

from workers import guard

log = logging.getLogger(__name__)
# Seconds after which a run counts as stuck. Readings query many disks in turn, and a mail server may be slow.
LIMITS = {"run-alerts": 900.0, "run-facts": 3600.0, "run-temperatures": 3600.0, "run-mail": 3600.0}
_running: dict[str, float] = {}
_lock = threading.Lock()


def start_thread(name: str, work: Callable[[], object]) -> bool:
    """Run ``work`` in a thread, unless a run of that name is under way; whether it was started."""
    with _lock:
        if name in _running:
            return False
        _running[name] = time.monotonic()
    try:
        threading.Thread(target=_run, args=(name, work), name=name, daemon=True).start()
    except RuntimeError:  # no more threads
        _ended(name)
        raise
    return True


def _run(name: str, work: Callable[[], object]) -> None:
    try:
        guard.run_guarded(name, work)
    finally:
        connections.close_all()
        _ended(name)


def _ended(name: str) -> None:
    with _lock:
        _running.pop(name, None)


def stuck_thread() -> str:
    """The name of a run that exceeds its limit; empty where there is none."""
    now = time.monotonic()
    with _lock:
        return next((name for name, since in _running.items() if now - since > LIMITS.get(name, 3600.0)), "")


def wait_for(work: Callable[[], object], seconds: float) -> bool:
    """Run ``work`` in a thread and wait at most ``seconds`` for it; whether it has ended."""

    def closing() -> None:
        try:
            work()
        except Exception as problem:
            guard.log_failure("work after a job", problem)
        finally:
            connections.close_all()

    thread = threading.Thread(target=closing, name="after-a-job", daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
