"""Tell the worker that there is something to do. Only ids go through Redis; without it the row waits.

The message is Celery's own, protocol version 2 (docs.celeryq.dev, "Message Protocol"), pushed onto the list
that the worker reads (``workers/redis_transport.py``). Celery could write it, and would keep 17 MiB of itself
in the web process for that.
"""

from __future__ import annotations

import base64
import json
import logging
import socket
import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from web.inventory import store

log = logging.getLogger(__name__)
# The facts that a page shows may be this old before somebody looking at it asks for new ones.
FRESH = timedelta(seconds=3)
QUEUE = "celery"  # Celery's default
SECONDS_FOR_REDIS = 2.0


def build_message(task: str, args: tuple[str, ...]) -> dict[str, Any]:
    """What Celery would send for this task."""
    task_id = str(uuid.uuid4())
    body = json.dumps([args, {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}])
    return {
        "body": base64.b64encode(body.encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": task,
            "id": task_id,
            "root_id": task_id,
            "parent_id": None,
            "group": None,
            "eta": None,
            "expires": None,
            "retries": 0,
            "timelimit": [None, None],
            "argsrepr": repr(args),  # in plain words in the worker's log and in Redis's monitor
            "kwargsrepr": "{}",
            "origin": "larder-web",
            "ignore_result": None,
        },
        "properties": {
            "correlation_id": task_id,
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": QUEUE},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": str(uuid.uuid4()),
        },
    }


def encode_command(*words: str) -> bytes:
    """A command in Redis's protocol (redis.io, "RESP")."""
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def push_message(queue: str, text: str) -> None:
    """Put a message into Redis's list. Raises OSError where Redis is away or does not take it."""
    command = encode_command("LPUSH", queue, text)
    with socket.socket(socket.AF_UNIX) as redis:
        redis.settimeout(SECONDS_FOR_REDIS)
        redis.connect(str(settings.BROKER_SOCKET))
        redis.sendall(command)
        answer = b""
        while not answer.endswith(b"\r\n"):
            part = redis.recv(200)
            if not part:
                break
            answer += part
    if not answer.startswith(b":"):
        raise OSError(f"Redis answered {answer[:100]!r}")


def is_reachable() -> bool:
    """Whether Redis takes connections."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(0.5)
            probe.connect(str(settings.BROKER_SOCKET))
    except OSError:
        return False
    return True


def send(task: str, *args: str) -> bool:
    """Put a task into the queue; False where Redis does not take it. The row is kept, and the worker sends it again."""
    try:
        push_message(QUEUE, json.dumps(build_message(task, args)))
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("could not queue %s: %s", task, error)
        return False
    return True


def request_refresh() -> None:
    """Somebody looks at a page: have the facts read again unless they are fresh."""
    if store.claim_refresh("looking", not_since=timezone.now() - FRESH):
        send("workers.collect")
