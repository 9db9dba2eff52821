"""Answer one request on one connection.

A request is one line of JSON; replies are lines of JSON, the last of which holds ``outcome``, ``facts``, ``refused``
(nothing was done) or ``failed`` (it could not be found out). Requests are in ``request_registry.py``, their contract is
``appliance/request.py``.
"""

from __future__ import annotations

import json
import logging
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

from appliance.agent.read_facts import read_facts
from appliance.agent.request_registry import decode_request
from appliance.errors import LarderError, Refused, explain_error
from appliance.facts.box import Facts
from appliance.request import LONGEST_REQUEST, SECONDS_TO_ASK, Exchange, Send, as_failure, refuse_file
from appliance.system import paths

log = logging.getLogger(__name__)


def answer_request(
    line: bytes,
    send: Send,
    facts: Callable[[], Facts] = read_facts,
    send_file: Callable[[dict[str, Any], int], None] = refuse_file,
) -> None:
    """Answer one request; whatever it holds, something is sent and nothing is raised."""
    try:
        decode_request(line).answer(Exchange(send, facts, send_file))
    except Refused as refusal:
        send({"refused": [reason.as_json() for reason in refusal.reasons]})
    except Exception as error:
        if not isinstance(error, LarderError):
            log.exception("a request broke")
        send(as_failure(explain_error(error)))


def may_ask(connection: socket.socket) -> bool:
    """Whether the peer is root or the owner of Larder's own folders; nobody else may ask."""
    _pid, uid, _gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in {0, paths.SECRETS.stat().st_uid}


def serve_connection(connection: socket.socket) -> None:
    """Read one request from a connection and answer it. Ends the process where the peer may not ask."""
    if not may_ask(connection):
        sys.exit("larder-agent: refused a connection from another user")
    connection.settimeout(SECONDS_TO_ASK)
    received = b""
    while b"\n" not in received and len(received) <= LONGEST_REQUEST:
        part = connection.recv(65536)
        if not part:
            break
        received += part

    def send(message: dict[str, Any]) -> None:
        try:
            connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # The client is gone. The work goes on: the journal keeps what becomes of it.
            pass

    def send_file(message: dict[str, Any], handle: int) -> None:
        try:
            socket.send_fds(connection, [json.dumps(message).encode() + b"\n"], [handle])
        except OSError:
            pass  # as above

    answer_request(received.partition(b"\n")[0], send, send_file=send_file)
