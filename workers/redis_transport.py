"""Celery's way to Larder's Redis: lists on a Unix socket, in some hundred lines.

Kombu's own transport does more (TCP, TLS, clusters, fanout) through redis-py, which keeps 9 MiB in the worker's memory.
This one takes and leaves the same messages in the same list. A message that is lost with its worker is not put back:
the rows of jobs are what counts, and the clock sends waiting ones again (``run_job.send_waiting``).
"""

from __future__ import annotations

import json
import logging
import socket
from contextlib import closing
from queue import Empty
from typing import Any

from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES, virtual

from web.jobs.queue import encode_command, push_message

log = logging.getLogger(__name__)
NAME = "larder-redis"
# Redis itself ends the wait for a message; beyond these seconds more it hangs.
SECONDS_FOR_REDIS = 5.0
SECONDS_OF_WAIT = 1.0  # where the caller names none
LONGEST_MESSAGE = 2**20


class RedisAway(ConnectionError):
    """Redis answers nothing, or something else than Redis would. Celery connects again."""


class QueueReader:
    """One connection that waits for messages (``BRPOP``), in Redis's protocol (redis.io, "RESP")."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS_FOR_REDIS)
        self.socket.connect(str(settings.BROKER_SOCKET))
        self.file = self.socket.makefile("rb")

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def ping(self) -> None:
        """Raises OSError where Redis does not answer as Redis does."""
        self.socket.sendall(encode_command("PING"))
        answer = self.file.readline(100)
        if answer != b"+PONG\r\n":
            raise RedisAway(f"Redis answered {answer!r}")

    def pop(self, names: list[str], seconds: float) -> tuple[str, str]:
        """The name of the list and its oldest message. Raises Empty after ``seconds``, RedisAway."""
        self.socket.settimeout(seconds + SECONDS_FOR_REDIS)
        try:
            self.socket.sendall(encode_command("BRPOP", *names, f"{seconds:.3f}"))
            first = self.file.readline(100)
            if first in {b"*-1\r\n", b"$-1\r\n"}:
                raise Empty
            if first != b"*2\r\n":
                raise RedisAway(f"Redis answered {first!r}")
            return self.read_text(), self.read_text()
        except TimeoutError as problem:  # which Celery would take for "no message yet"
            raise RedisAway("Redis does not answer") from problem

    def read_text(self) -> str:
        head = self.file.readline(100)
        if not head.startswith(b"$") or not head[1:-2].isdigit() or int(head[1:]) > LONGEST_MESSAGE:
            raise RedisAway(f"Redis answered {head!r}")
        size = int(head[1:])
        text = self.file.read(size + 2)
        if len(text) != size + 2:
            raise RedisAway("Redis ended within an answer")
        return text[:size].decode(errors="replace")


class Channel(virtual.Channel):
    """Takes messages from lists and puts them into lists."""

    do_restore = False
    reader: QueueReader | None = None

    def _put(self, queue: str, message: Any, **_options: Any) -> None:
        push_message(queue, json.dumps(message))

    def _purge(self, queue: str) -> int:
        return 0  # nobody empties Larder's queue

    def _poll(self, cycle: Any, callback: Any, timeout: float | None = None) -> None:
        """Hand the next message to ``callback``. Raises Empty where none came in time, or
        something that is no message."""
        if self.reader is None:
            self.reader = QueueReader()
        name, text = self.reader.pop(self._active_queues, timeout or SECONDS_OF_WAIT)
        try:
            message = json.loads(text)
            self.Message(message, channel=self)
        except (ValueError, TypeError, LookupError, AttributeError) as problem:  # Celery would end the worker
            log.warning("what came from the queue was no message: %r", problem)
            raise Empty from problem
        callback(message, name)

    def close(self) -> None:
        super().close()
        if self.reader is not None:
            self.reader.close()
            self.reader = None


class Transport(virtual.Transport):
    """What Celery asks for a connection."""

    Channel = Channel
    driver_type = "redis"
    driver_name = NAME
    connection_errors = (*virtual.Transport.connection_errors, OSError)
    polling_interval = 0.2  # seconds; only while all threads are taken, since waiting for a message needs no polling

    def establish_connection(self) -> Any:
        """Raises OSError where Redis is away, hangs or answers oddly:
        Celery waits longer before each new try of this, but connects again at once after a connection that was lost."""
        with closing(QueueReader()) as reader:
            reader.ping()
        return super().establish_connection()

    def driver_version(self) -> str:
        return "N/A"


TRANSPORT_ALIASES[NAME] = "workers.redis_transport:Transport"
