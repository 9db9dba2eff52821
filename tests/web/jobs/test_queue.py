"""What the web process pushes into Redis is what a Celery worker takes for a task."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest
from celery import Celery
from kombu.transport.virtual import Channel

from web.jobs import queue


class Kept(Channel):
    """A channel that keeps what would go to Redis."""

    put: list[dict] = []

    def _put(self, queue, message, **_options):
        self.put.append(message)

    def _lookup(self, exchange, routing_key, default=None):
        return [routing_key]


@pytest.fixture
def redis(settings, tmp_path):
    """A socket that takes one command and answers as told; what it got."""
    got: list[bytes] = []
    path = tmp_path / "redis.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(4)
    settings.BROKER_SOCKET = Path(path)

    def answer_with(answer: bytes) -> list[bytes]:
        def serve() -> None:
            connection, _address = server.accept()
            got.append(connection.recv(65536))
            connection.sendall(answer)
            connection.close()

        threading.Thread(target=serve, daemon=True).start()
        return got

    yield answer_with
    server.close()


def by_celery(task: str, *args: str) -> dict:
    """The message that Celery itself writes for a task."""
    app = Celery("test", broker="memory://")
    app.conf.update(task_ignore_result=True)
    Kept.put = []
    with app.connection_for_write() as connection:
        connection.transport.Channel = Kept  # type: ignore[attr-defined]
        app.send_task(task, args=args, connection=connection)
    return Kept.put[0]


def test_message_holds_what_celery_itself_would_send():
    theirs, ours = by_celery("workers.run_job", "some-id"), queue.build_message("workers.run_job", ("some-id",))
    assert set(ours) == set(theirs)
    assert set(ours["headers"]) <= set(theirs["headers"])
    assert set(ours["properties"]) <= set(theirs["properties"])
    same = {
        "lang",
        "task",
        "parent_id",
        "group",
        "eta",
        "expires",
        "retries",
        "timelimit",
        "ignore_result",
        "argsrepr",
        "kwargsrepr",
    }
    assert {key: ours["headers"][key] for key in same} == json.loads(
        json.dumps({key: theirs["headers"][key] for key in same})
    )
    assert ours["headers"]["id"] == ours["headers"]["root_id"] == ours["properties"]["correlation_id"]
    for key in ("body", "content-encoding", "content-type"):
        assert ours[key] == theirs[key]
    for key in ("delivery_info", "body_encoding", "delivery_mode", "priority"):
        assert ours["properties"][key] == theirs["properties"][key]


def test_task_is_pushed_onto_the_list_that_the_worker_reads(redis):
    got = redis(b":1\r\n")
    assert queue.send("workers.run_job", "some-id")
    assert got[0].startswith(b"*3\r\n$5\r\nLPUSH\r\n$6\r\ncelery\r\n$")
    assert json.loads(got[0].split(b"\r\n", 6)[6].rstrip(b"\r\n"))["headers"]["task"] == "workers.run_job"


@pytest.mark.parametrize("answer", [b"-OOM command not allowed\r\n", b"", b"nonsense"])
def test_task_is_not_called_sent_where_redis_refuses(redis, answer):
    redis(answer)
    assert not queue.send("workers.run_job", "some-id")


def test_task_is_not_called_sent_where_redis_hangs(redis, monkeypatch):
    monkeypatch.setattr(queue, "SECONDS_FOR_REDIS", 0.05)
    assert not queue.send("workers.run_job", "some-id")  # nobody accepts
