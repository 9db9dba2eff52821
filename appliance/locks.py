"""One lock per pool (or other thing that only one job may touch), held by the kernel and freed at death."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from appliance import places

SECONDS_BETWEEN_TRIES = 0.2


@contextmanager
def held(names: Iterable[str], waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the locks of all names, taken in sorted order; ``waiting`` is called with a name while it is another's."""
    places.LOCKS.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        for name in sorted(set(names)):
            handle = os.open(
                places.LOCKS / hashlib.sha256(name.encode()).hexdigest()[:32],
                os.O_CREAT | os.O_RDWR | os.O_CLOEXEC,
                0o600,
            )
            stack.callback(os.close, handle)
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waiting(name)
                    time.sleep(SECONDS_BETWEEN_TRIES)
        yield


def any_held() -> bool:
    """Whether some job holds a lock now."""
    return any(map(taken, places.LOCKS.glob("*")))


def taken(path: Path) -> bool:
    """Whether some process holds the lock on that file now. Raises OSError where it cannot be opened."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
