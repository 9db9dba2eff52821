"""How web and worker reach the agent: one connection, one request, replies as they come."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from appliance.errors import Failed, Reason, Refused
from appliance.message import Message, as_said, message_of
from appliance.names import job_id
from appliance.system import paths

SECONDS_TO_CONNECT = 10
SECONDS_OF_SILENCE = 6 * 3600


def say(connection: socket.socket, request: dict[str, Any]) -> None:
    """Send a request. An agent that is too busy to take it answers and closes before it is sent:
    what it said is read next."""
    with suppress(BrokenPipeError):
        connection.sendall(json.dumps(request).encode() + b"\n")


def stream_replies(request: dict[str, Any], *, silence: float = SECONDS_OF_SILENCE) -> Iterator[dict[str, Any]]:
    """Send a request and yield the replies. Raises Failed where the agent is out of reach, Refused where it refuses."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS_TO_CONNECT)
        try:
            connection.connect(str(paths.AGENT_SOCKET))
            say(connection, request)
            connection.settimeout(silence)
            for line in connection.makefile("rb"):
                yield raise_for_refusal(json.loads(line))
        except (OSError, ValueError) as error:
            raise Failed(Message("Larder's agent does not answer"), describe_connection_error(error)) from error


def open_file(
    request: dict[str, Any], *, silence: float = 60, report: Callable[[dict[str, Any]], None] = lambda _told: None
) -> tuple[dict[str, Any], int]:
    """What the agent tells of a file, and the file itself: a descriptor that the caller closes. Raises as ``ask``.

    What comes before it, while the file is being made, goes to ``report``.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS_TO_CONNECT)
        handles: list[int] = []
        try:
            connection.connect(str(paths.AGENT_SOCKET))
            say(connection, request)
            connection.settimeout(silence)
            received = b""
            while True:
                part, found, _flags, _address = socket.recv_fds(connection, 65536, 1)
                handles += found
                *lines, received = (received + part).split(b"\n") if part else (received, b"")
                replies = [raise_for_refusal(json.loads(line)) for line in lines]
                if reply := next((one for one in replies if "facts" in one), None):
                    break
                if not part:
                    raise Failed(Message("Larder's agent ended without an answer"))
                for told in replies:
                    report(told)
            if len(handles) != 1:
                raise Failed(Message("Larder's agent sent no file"))
            return reply["facts"], handles.pop()
        except (OSError, ValueError) as error:
            raise Failed(Message("Larder's agent does not answer"), describe_connection_error(error)) from error
        finally:
            for handle in handles:
                os.close(handle)


def describe_connection_error(error: OSError | ValueError) -> str:
    """Why the agent did not answer, in words: these end up on a page."""
    match error:
        case FileNotFoundError() | ConnectionRefusedError():
            return Message("it is not running")
        case TimeoutError():
            return Message("nothing came in time")
        case BrokenPipeError() | ConnectionResetError():
            return Message("it stopped in the middle")
        case OSError(strerror=str(words)):
            return words
        case _:
            return Message("it broke off in the middle of its answer")


def raise_for_refusal(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply that is neither a refusal nor a failure, its facts with their messages. Raises Refused, Failed."""
    said = reply.get("messages", {})
    if "refused" in reply:
        raise Refused(*map(Reason.from_json, reply["refused"]))
    if "failed" in reply:
        raise Failed(message_of(reply["failed"], said))
    return {**reply, "facts": as_said(reply["facts"], said)} if said and "facts" in reply else reply


def send_request(request: dict[str, Any], *, silence: float = 120) -> dict[str, Any]:
    """The last reply to a request. Raises as ``ask``; Failed where there was none."""
    reply: dict[str, Any] = {}
    for message in stream_replies(request, silence=silence):
        reply = message
    if not reply:
        raise Failed(Message("Larder's agent ended without an answer"))
    return reply


def leave_secret(job: str, secret: str) -> None:
    """Put a passphrase or password where the agent finds it, readable to nobody else, on a file system in memory."""
    path = paths.SECRETS / job_id(job)
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secret.encode())


def forget_secret(job: str) -> None:
    """Remove the secret of a job that will not run."""
    (paths.SECRETS / job_id(job)).unlink(missing_ok=True)
