"""The Celery application: one worker process with threads, and the clock as one of them."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
import uuid
from typing import Any

import django
from celery import Celery, bootsteps, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
django.setup()

# Django has to be set up before its models are imported.
from web.system.service_status import WORKER_LOCK  # noqa: E402
from workers import redis_transport, watchdog  # noqa: E402

log = logging.getLogger(__name__)
# Identifies this process. A running job with another token has lost its worker.
TOKEN = str(uuid.uuid4())
SECONDS_BETWEEN_TICKS = 5.0


class Beat(bootsteps.StartStopStep):
    """The clock: a thread that runs the ticks itself, so it needs neither Redis nor a thread that a job could hold.

    It uses the monotonic clock. Celery's own beat uses the time of day and stops while that is set back.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self.stopping = threading.Event()

    def start(self, parent: Any) -> None:
        self.stopping.clear()
        watchdog.note_restart()
        watchdog.notify_systemd("READY=1")
        threading.Thread(target=self.beat, name="beat", daemon=True).start()

    def stop(self, parent: Any) -> None:
        self.stopping.set()
        watchdog.notify_systemd("STOPPING=1")
        watchdog.stage_file().unlink(missing_ok=True)

    def beat(self) -> None:
        from workers.tick import tick  # which imports this module

        while not self.stopping.wait(SECONDS_BETWEEN_TICKS):
            try:
                tick()
            except Exception:  # each stage has its guard; this is for faults of the clock
                log.exception("a tick broke off")


app = Celery("larder", broker=f"{redis_transport.NAME}://localhost")
app.conf.update(
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    # Nobody commands the worker through its queue.
    worker_enable_remote_control=False,
    # The clock sends what was not taken.
    task_publish_retry=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    enable_utc=True,
    imports=[
        "workers.run_job",
        "workers.collectors",
        "workers.collect_box",
        "workers.collect_connections",
        "workers.collect_dataset",
        "workers.collect_history",
        "workers.alerts.deliver",
        "workers.collect_importable",
        "workers.diagnose_share",
        "workers.tick",
    ],
)
app.steps["worker"].add(Beat)
_lock: list[int] = []


@signals.worker_init.connect
def hold_worker_lock(**_details: Any) -> None:
    """Hold the lock that says a worker runs; a second worker on this box ends at once."""
    handle = os.open(WORKER_LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    for _attempt in range(20):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A page that tests for a running worker also takes the lock for an instant.
            time.sleep(0.1)
        else:
            _lock.append(handle)
            return
    raise SystemExit("another worker of Larder runs on this box")
