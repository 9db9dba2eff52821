"""Another computer as the place of copies: the same planner sends to it as to a pool of this box.

What is set on a copy there is its mark alone. Everything that keeps it out of use it has from the folder that its owner
made, and both are read back. Nothing there is destroyed from here: which copies stay is decided there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from appliance import command
from appliance.backups import copies
from appliance.backups.copy_dataset import LARGE, PLAIN
from appliance.backups.match import Copy
from appliance.backups.remote import answers, connection
from appliance.backups.remote.answers import Hello, RemoteCopy
from appliance.errors import Failed
from appliance.facts import user_properties
from appliance.facts.copy_mark import CopyMark, parse_copy_mark
from appliance.facts.remote import Remote
from appliance.message import Message, join_messages
from appliance.operation import Work

SECONDS_TO_CHANGE = 300
TOKEN = re.compile(r"[0-9a-f]+(-[0-9a-f]+)+")


class RemotePlace:
    """The folder for copies on another computer. Names are those of copies below it."""

    may_end = True  # here only ssh waits

    def __init__(self, remote: Remote, hello: Hello) -> None:
        self.remote, self.hello = remote, hello
        self.latest: RemoteCopy | None = None  # the copy that was read last

    def read_copy(self, name: str) -> Copy:
        found = self.read_remote(name)
        if found is None:
            return Copy(name)
        text = self.read_token(name) if found.is_partial else ""
        return Copy(
            name,
            exists=True,
            mark=found.mark,
            guids=found.guids,
            names=tuple(short for _txg, _guid, short in found.snapshots),
            written=found.written,
            token=copies.read_token(text) if text else None,
        )

    def read_remote(self, name: str) -> RemoteCopy | None:
        """What lies under a name there; None: nothing. Raises Failed."""
        try:
            said = connection.ask(self.remote, ("list", name))
        except command.CommandFailed as failed:
            if "does not exist" in failed.said:
                return None
            raise Failed(
                Message("{host} does not show {name}", host=self.remote.host, name=name), failed.said
            ) from failed
        self.latest = answers.parse_list(said, self.remote).get(name)
        if self.latest is None:
            raise Failed(
                Message("{host} does not show {name}", host=self.remote.host, name=name),
                Message("It answered with something else."),
            )
        return self.latest

    def read_token(self, name: str) -> str:
        text = connection.ask(self.remote, ("token", name)).strip()
        if not TOKEN.fullmatch(text):
            raise Failed(
                Message("{host} does not say what was interrupted", host=self.remote.host), Message("Try again.")
            )
        return text

    def settle(self, work: Work, name: str, wanted: Mapping[str, str]) -> None:
        mark = wanted_mark(wanted)
        found = self.read_remote(name)
        if found and found.mark is None:
            work.note(Message("Set on {name}: {keys}.", name=name, keys=user_properties.COPY_OF))
            try:
                connection.ask(self.remote, ("mark", name, str(mark.guid), mode_of(wanted)))
            except command.CommandFailed as failed:
                raise Failed(
                    Message("{name} was not marked on {host}", name=name, host=self.remote.host),
                    self.explain_rights("userprop", failed.said),
                ) from failed
            found = self.read_remote(name)
        if found is None or found.mark != mark:
            raise Failed(
                Message("{name} was not marked on {host}", name=name, host=self.remote.host),
                self.explain_rights("userprop", ""),
            )
        if wrong := found.open_properties:
            text = " ".join(f"{key}={value}" for key, value in sorted(wrong.items()))
            raise Failed(
                Message("{name} was not kept out of use", name=name),
                Message(
                    "As root on {host}: zfs set {text} {root}/{name}",
                    host=self.remote.host,
                    text=text,
                    root=self.remote.root,
                    name=name,
                ),
            )

    def explain_rights(self, right: str, said: str) -> str:
        advice = Message(
            "Perhaps a right is missing. As root on {host}: zfs allow -u {user} {right} {root}",
            host=self.remote.host,
            user=self.remote.user,
            right=right,
            root=self.remote.root,
        )
        return join_messages([said, advice])

    def discard(self, name: str) -> None:
        try:
            connection.ask(self.remote, ("abort", name), timeout=SECONDS_TO_CHANGE)
        except command.CommandFailed as failed:
            raise Failed(
                Message(
                    "What an interrupted run left in {name} no longer fits, and this box may not discard it", name=name
                ),
                join_messages(
                    [
                        failed.said,
                        Message(
                            "As root on {host}: zfs receive -A {root}/{name}",
                            host=self.remote.host,
                            root=self.remote.root,
                            name=name,
                        ),
                    ]
                ),
            ) from failed

    def free_space(self, name: str) -> tuple[str, int] | None:  # the folder's, which limits every copy
        return f"{self.remote.root} on {self.remote.host}", self.hello.available

    def key_set(self, name: str, guid: int) -> str:
        found = self.latest or self.read_remote(name)
        return found.key_sets.get(guid, "") if found else ""

    def is_stopped(self, name: str) -> bool:
        return False  # its receiver is on that computer

    def receiver(self, name: str, wanted: Mapping[str, str], *, new: bool) -> list[str]:
        return connection.ssh_argv(self.remote, self.words(name, wanted), aes=self.aes)

    @property
    def aes(self) -> bool:
        return self.hello.aes and connection.has_aes()

    def words(self, name: str, wanted: Mapping[str, str]) -> Sequence[str]:
        return ("receive", name, str(wanted_mark(wanted).guid), mode_of(wanted))


def wanted_mark(wanted: Mapping[str, str]) -> CopyMark:
    mark = parse_copy_mark(wanted.get(user_properties.COPY_OF, ""))
    if mark is None:
        raise Failed(Message("A copy without a mark cannot be sent"))
    return mark


def mode_of(wanted: Mapping[str, str]) -> str:
    """How a copy's streams are sent, which is noted on it and stays while it lives: ``raw``, ``large`` or ``plain``."""
    if wanted_mark(wanted).raw:
        return "raw"
    return PLAIN if wanted.get(user_properties.SENT) == PLAIN else LARGE


def say_hello(remote: Remote) -> Hello:
    """What the other computer is and may do. Raises Unreachable, Refused, Failed."""
    try:
        return answers.parse_hello(connection.ask(remote, ("hello",)), remote.host)
    except command.CommandFailed as failed:
        raise connection.Unreachable(
            "remote-peer-refused", Message("larder-peer on {host} refused to answer", host=remote.host), failed.said
        ) from failed


def list_all(remote: Remote) -> dict[str, RemoteCopy]:
    """Every copy there, by its name. Raises Failed."""
    return answers.parse_list(connection.ask(remote, ("list",), timeout=SECONDS_TO_CHANGE), remote)
