"""The worker: ``python -m workers``.

Celery's own command line would do the same, and keep ten megabytes of its shell and its colours in memory for it.
"""

from __future__ import annotations

import faulthandler
import sys
from typing import Any

from workers.celery import app

THREADS = 8


def make_worker() -> Any:
    return app.Worker(
        pool_cls="threads",
        concurrency=THREADS,
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )


def main() -> int:
    """Serve the queue until told to stop; the exit status."""
    faulthandler.enable()  # systemd ends a worker that hangs by SIGABRT: the journal then says where it hung
    worker = make_worker()
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
