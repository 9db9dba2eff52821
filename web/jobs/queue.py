"""Tell the workers that there is something to do. Only ids go through Redis; without it the row waits."""

from __future__ import annotations

import functools
import logging
import socket
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from web.inventory import store

log = logging.getLogger(__name__)
# The facts that a page shows may be this old before somebody looking at it asks for new ones.
FRESH = timedelta(seconds=3)


@functools.cache
def celery() -> Any:
    """A Celery application that only sends; it knows the tasks by name and imports none of them."""
    from celery import Celery

    app = Celery("larder-web", broker=settings.BROKER_URL, set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        broker_transport_options={"socket_connect_timeout": 1, "socket_timeout": 2},
        broker_connection_timeout=1,
    )
    return app


def reachable() -> bool:
    """Whether Redis takes connections."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(0.5)
            probe.connect(str(settings.BROKER_SOCKET))
    except OSError:
        return False
    return True


def send(task: str, *args: str) -> bool:
    """Put a task into the queue; False where Redis does not take it."""
    if not reachable():
        return False
    try:
        celery().send_task(task, args=args, retry=False)
    except Exception as error:  # whatever kombu raises, the row is kept and sent again by the worker
        log.warning("could not queue %s: %s", task, error)
        return False
    return True


def look() -> None:
    """Somebody looks at a page: have the facts read again unless they are fresh."""
    if store.claim_refresh("looking", not_since=timezone.now() - FRESH):
        send("workers.collect")
