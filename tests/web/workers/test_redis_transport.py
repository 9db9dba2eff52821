"""Celery's way to Redis: what pages queue arrives, and a Redis that is away, hangs or ends holds nothing for ever."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections import defaultdict

import pytest
from kombu import Connection, Queue
from kombu.exceptions import OperationalError

from web.jobs import queue
from workers import redis_transport
from workers.celery import app


class Lists(socketserver.ThreadingUnixStreamServer):
    """As much of Redis as the queue needs; ``says`` is what it answers instead."""

    daemon_threads = True

    def __init__(self, path: str) -> None:
        self.lists: dict[str, list[str]] = defaultdict(list)
        self.commands: list[list[str]] = []
        self.says: bytes | None = None
        self.filled = threading.Condition()
        super().__init__(path, Answering)


class Answering(socketserver.StreamRequestHandler):
    server: Lists

    def handle(self) -> None:
        while head := self.rfile.readline():
            words = [self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2].decode() for _ in range(int(head[1:]))]
            self.server.commands.append(words)
            if self.server.says is not None:
                self.wfile.write(self.server.says)
                if self.server.says:
                    return
            else:
                self.wfile.write(self.answer(*words))

    def answer(self, verb: str, name: str = "", argument: str = "") -> bytes:
        if verb == "PING":
            return b"+PONG\r\n"
        with self.server.filled:
            kept = self.server.lists[name]
            if verb == "LPUSH":
                kept.insert(0, argument)
                self.server.filled.notify_all()
                return b":%d\r\n" % len(kept)
            assert verb == "BRPOP"
            if not self.server.filled.wait_for(lambda: kept, float(argument)):
                return b"*-1\r\n"
            found = kept.pop().encode(errors="surrogateescape")
            return b"*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(name), name.encode(), len(found), found)


@pytest.fixture
def redis(settings, tmp_path, monkeypatch):
    settings.BROKER_SOCKET = tmp_path / "redis.sock"
    monkeypatch.setattr(redis_transport, "SECONDS_FOR_REDIS", 0.2)
    monkeypatch.setattr(queue, "SECONDS_FOR_REDIS", 0.2)
    with Lists(str(settings.BROKER_SOCKET)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def consumer(redis):
    """A connection of the worker's that consumes its queue; what it got."""
    with app.connection_for_read() as connection:
        got: list[str] = []

        def take(_body, message) -> None:
            got.append(message.headers["task"])
            message.ack()

        with connection.Consumer([Queue("celery")], callbacks=[take]):
            yield connection, got


def test_what_a_page_and_the_clock_queue_reaches_the_worker_in_order(consumer):
    connection, got = consumer
    assert queue.send("workers.first", "some-id")
    app.send_task("workers.second", args=("some-id",))
    connection.drain_events(timeout=5)
    connection.drain_events(timeout=5)
    assert got == ["workers.first", "workers.second"]


def test_no_message_in_time_is_what_celery_calls_so(consumer):
    connection, got = consumer
    with pytest.raises(socket.timeout):
        connection.drain_events(timeout=0.05)
    assert got == []


ODD_ANSWERS = pytest.mark.parametrize(
    "says",
    [b"", b"-LOADING\r\n", b"*2\r\n:1\r\n", b"*2\r\n$6\r\ncel", b"*2\r\n$99999999\r\n", b"\x00\xff nonsense"],
    ids=["hangs", "loads", "number", "ends", "endless", "nonsense"],
)


@ODD_ANSWERS
def test_a_redis_that_does_not_answer_is_a_lost_connection_and_no_empty_queue(says, redis, consumer):
    connection, _got = consumer
    redis.says = says
    with pytest.raises(redis_transport.RedisAway) as caught:
        connection.drain_events(timeout=0.05)
    assert isinstance(caught.value, connection.connection_errors)
    assert not isinstance(caught.value, TimeoutError)


NO_MESSAGES = {
    "text": "nonsense",
    "bytes": "\udcff\udcfe",
    "list": "[]",
    "no tag": '{"properties": {}}',
    "no base64": '{"properties": {"delivery_tag": "1", "body_encoding": "base64"}, "body": "a"}',
    "odd properties": '{"properties": 3}',
}


@pytest.mark.parametrize("text", NO_MESSAGES.values(), ids=NO_MESSAGES.keys())
def test_something_in_the_queue_that_is_no_message_is_dropped_and_the_next_one_arrives(text, redis, consumer, caplog):
    connection, got = consumer
    redis.lists[queue.QUEUE].append(text)
    assert queue.send("workers.first")
    connection.drain_events(timeout=5)
    assert got == ["workers.first"]
    assert "was no message" in caplog.text


def test_a_worker_that_finds_no_redis_is_told_so_and_may_try_again(settings, tmp_path):
    settings.BROKER_SOCKET = tmp_path / "nobody"
    with pytest.raises(OperationalError), app.connection_for_read() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_max=0)


@ODD_ANSWERS
def test_a_redis_that_answers_oddly_is_connected_to_at_growing_intervals_and_not_at_once(says, redis):
    """Celery waits longer after each connection that fails, but not after one that is lost."""
    redis.says = says
    with app.connection_for_read() as connection, pytest.raises(OperationalError):
        connection.ensure_connection(max_retries=1, interval_start=0, interval_max=0)
    assert {words[0] for words in redis.commands} == {"PING"}


def test_a_connection_that_was_lost_is_made_again(redis, consumer):
    connection, got = consumer
    redis.says = b"-LOADING\r\n"
    with pytest.raises(redis_transport.RedisAway):
        connection.drain_events(timeout=0.05)
    redis.says = None
    assert queue.send("workers.tick")
    with Connection(app.conf.broker_url) as again, again.Consumer([Queue("celery")]) as other:
        other.register_callback(lambda _body, message: got.append(message.headers["task"]))
        again.drain_events(timeout=5)
    assert got == ["workers.tick"]


def test_sending_into_a_queue_that_hangs_comes_back(redis):
    redis.says = b""
    with pytest.raises(OperationalError):
        app.send_task("workers.run_job", args=("x",))


def test_sending_into_a_queue_that_is_away_comes_back(settings, tmp_path):
    settings.BROKER_SOCKET = tmp_path / "nobody"
    with pytest.raises(OperationalError):
        app.send_task("workers.run_job", args=("x",))


def test_messages_are_those_of_kombus_own_transport(redis):
    """A worker of the version before finds them in the same list, in the same form."""
    app.send_task("workers.tick")
    assert redis.commands[-1][:2] == ["LPUSH", queue.QUEUE]
    assert set(json.loads(redis.commands[-1][2])) == {
        "body",
        "content-encoding",
        "content-type",
        "headers",
        "properties",
    }
