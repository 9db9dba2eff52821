"""The Celery application: one worker process with threads, and its beat as one of them."""

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

from django.conf import settings  # noqa: E402  # Django has to be set up before its models are imported

from web.system.service_status import WORKER_LOCK  # noqa: E402
from workers import watchdog  # noqa: E402

log = logging.getLogger(__name__)
# Who holds a running job: this very process. A job held by another token has lost its worker.
TOKEN = str(uuid.uuid4())
SECONDS_BETWEEN_TICKS = 5.0


class Beat(bootsteps.StartStopStep):
    """The clock as a thread of its own, which does the work of a tick itself: it needs neither Redis nor a thread that a job
    could hold. It counts the time that passes: Celery's own beat goes by the date, and stands still for as long as somebody
    has set that back."""

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
            except Exception:  # each stage has its guard; this is for the clock's own faults
                log.exception("a tick broke off")


app = Celery("larder", broker=settings.BROKER_URL)
app.conf.update(
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # A Redis that hangs must hold no thread for ever: neither in an answer that does not come nor in trying again.
    broker_transport_options={
        "health_check_interval": 30,
        "socket_connect_timeout": 5,
        "socket_timeout": 15,
        "max_retries": 1,
        "interval_start": 0,
        "interval_max": 1,
    },
    enable_utc=True,
    imports=[
        "workers.run_job",
        "workers.collectors",
        "workers.collect_connections",
        "workers.collect_dataset_details",
        "workers.collect_history",
        "workers.deliver",
        "workers.collect_importable",
        "workers.diagnose_share",
        "workers.tick",
    ],
)
app.steps["worker"].add(Beat)
_lock: list[int] = []


@signals.worker_init.connect
def hold_worker_lock(**_details: Any) -> None:
    """Hold the lock that says a worker lives; a second one on this box ends at once."""
    handle = os.open(WORKER_LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    for _attempt in range(20):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A page that looks whether a worker lives holds the lock too, for an instant.
            time.sleep(0.1)
        else:
            _lock.append(handle)
            return
    raise SystemExit("another worker of Larder runs on this box")
