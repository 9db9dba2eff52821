"""The contract of everything that web and worker may ask the agent, apart from operations.

A request is typed fields that validate themselves, and a method that answers it. Its class stands beside what it reads
and is listed in ``appliance/agent/request_registry.py``; the agent answers nothing that is not listed there. Web and
worker are taken to be hostile: the agent decodes each request again, and that decoding is the validation that counts.

Guards that are the same for every request are applied by ``appliance/agent/protocol.py``: who may ask,
``LONGEST_REQUEST`` and ``SECONDS_TO_ASK``. Locks and the time that a command may take belong to what a request calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from appliance.errors import Failed
from appliance.facts.box import Facts
from appliance.message import Message, PlainText, messages_by_text
from appliance.strict_struct import StrictStruct

LONGEST_REQUEST = 1024 * 1024  # bytes; thousands of snapshots by name and guid
SECONDS_TO_ASK = 30  # for the whole line of a request
Send = Callable[[dict[str, Any]], None]


def refuse_file(_message: dict[str, Any], _handle: int) -> None:
    """For a connection that cannot carry a descriptor. Raises Failed."""
    raise Failed(Message("This connection cannot carry an open file"))


class Exchange(msgspec.Struct, frozen=True):
    """What an answer may use: ``send`` a message, ``read_facts`` of the box, ``send_file`` a
    message with a descriptor."""

    send: Send
    read_facts: Callable[[], Facts]
    send_file: Callable[[dict[str, Any], int], None] = refuse_file


class Request(StrictStruct, tag_field="verb"):
    """Base of all requests. Subclasses validate their fields in ``__post_init__`` through ``appliance.names``.

    The tag is the verb on the wire, which web and agent of different versions share for a moment during an update: a
    class can be renamed, a tag or a field cannot.
    """

    def read(self) -> object:
        """The facts that were asked for, of types that msgspec turns into JSON. Raises Refused, Failed."""
        raise NotImplementedError

    def answer(self, exchange: Exchange) -> None:
        """Send the facts; overridden by what sends more than one message, a file or an outcome.
        Raises Refused, Failed."""
        exchange.send(as_facts(self.read()))


def as_facts(found: object) -> dict[str, Any]:
    """A reply with these facts, and what its texts were made from."""
    plain = PlainText()
    facts = {"facts": msgspec.to_builtins(found, enc_hook=plain)}
    return facts | ({"messages": plain.said} if plain.said else {})


def as_failure(text: str) -> dict[str, Any]:
    """A reply that says why something could not be found out."""
    return {"failed": text, "messages": messages_by_text(text)}


def verb_of(request: Request | type[Request]) -> str:
    """The tag of a request: what it is called on the wire."""
    return str(request.__struct_config__.tag)
