"""What every kind of source can do, and what they share."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from appliance.command import Result
from appliance.errors import Failed
from appliance.facts.file_import import FileImport
from appliance.imports.exit_status import LOST
from appliance.message import Message

SECONDS_TO_CONNECT = 10
UNKNOWN_NAME = re.compile("could not resolve|failed to resolve|name or service not known|getaddrinfo", re.IGNORECASE)
REFUSED = re.compile(r"connection refused|error\(111\)", re.IGNORECASE)
NO_ROUTE = re.compile(
    r"no route to host|network is unreachable|timed out|timeout|error\((101|110|112|113|115)\)", re.IGNORECASE
)


class SourceAway(Failed):
    """The other NAS does not answer, or no longer: what a run that has begun waits for."""


class ImportSource:
    """One kind of other NAS. ``task`` is an import from such a one."""

    port: ClassVar[int]
    has_passwords = False  # whether a user there signs in by a password
    has_owners = True  # whether its files have owners that can be mapped to users here
    has_owner_names = False  # whether those can be named, and not only by number
    is_mounted = False  # whether rsync reads it as a local folder

    def check(self, host: str, user: str, path: str) -> None:
        """Raise Refused for what this kind cannot reach."""

    def operand(self, task: FileImport) -> str:
        """The folder over there, as rsync takes it."""
        raise NotImplementedError

    def options(self, task: FileImport) -> list[str]:
        """What rsync needs to get there."""
        raise NotImplementedError

    def furnish(self, task: FileImport, place: Path) -> None:
        """Put into the sandbox what rsync needs to get there. Raises Failed."""
        raise NotImplementedError

    def watch(self, task: FileImport, place: Path) -> Callable[[], None]:
        """What is called every second while rsync runs. It raises SourceAway where the
        other NAS went away unnoticed."""
        return lambda: None

    def ask(self, task: FileImport) -> None:
        """Raise Failed where nothing answers there."""
        connect(task)

    def is_lost(self, result: Result) -> bool:
        """Whether rsync ended because the connection broke off."""
        return result.status in LOST

    def explain(self, task: FileImport, result: Result) -> Failed | None:
        """Why rsync did not get there, from its status and words; None where that is not why it ended."""
        raise NotImplementedError


def connect(task: FileImport) -> None:
    """Raise SourceAway where nothing takes a connection there."""
    try:
        socket.create_connection((task.host, task.port), SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise away(task) from error


def place_of(task: FileImport) -> Message:
    return Message("{host}, port {port}", host=task.host, port=task.port)


def away(task: FileImport) -> SourceAway:
    return SourceAway(
        Message("{host} does not answer any more", host=task.host),
        Message("Is it switched on and connected to the network? What was copied stays. Start the import again later."),
    )


def unreachable(task: FileImport, said: str, advice: str) -> SourceAway | None:
    """Why nothing answers there, for every kind; ``advice`` is where to switch it on."""
    if UNKNOWN_NAME.search(said):
        return SourceAway(
            Message("There is no computer with the name {host}", host=task.host),
            Message("Check the name, or enter its address."),
        )
    if REFUSED.search(said):
        return SourceAway(Message("Nothing answers at {place}", place=place_of(task)), advice)
    if NO_ROUTE.search(said):
        return SourceAway(
            Message("{place} cannot be reached", place=place_of(task)),
            Message("Is it switched on and connected to the network?"),
        )
    return None


def password_refused(task: FileImport) -> Failed:
    if not task.user:
        return Failed(
            Message("{host} lets nobody in without a password", host=task.host),
            Message("Remove this import and set it up again with a user there."),
        )
    return Failed(
        Message("{host} does not let {user} in", host=task.host, user=task.user),
        Message(
            "Look at the rights of that user there, and change the password on the page of this import if it was wrong."
        ),
    )


def split_path(path: str) -> tuple[str, str]:
    """The first part of ``/photos/2019``, which is a share or module, and the rest."""
    first, _slash, rest = path.strip("/").partition("/")
    return first, rest
