"""Another computer as the source of a restore: its copy is sent by ``larder-peer`` there and received here.

What arrives was made by that computer. It is received out of use; before it gets its name, nothing but the wanted
snapshots may have come, and no property.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from typing import Self

import msgspec
from msgspec.structs import replace

from appliance import command
from appliance.backups import copies, match
from appliance.backups.match import Point
from appliance.backups.remote import answers, connection, settings
from appliance.backups.remote.answers import Hello, RemoteCopy
from appliance.backups.remote.remote_place import SECONDS_TO_CHANGE, say_hello
from appliance.backups.staging import Restored, discard_part
from appliance.backups.stream import NotReceived
from appliance.backups.transfer import read_features, run_transfer, send_flags
from appliance.errors import Failed, Reason, Refused
from appliance.facts.remote import Remote
from appliance.formatting import names_text
from appliance.message import Message
from appliance.operation import Work
from appliance.zfs import list_snapshots

# Of a stream with properties none of these would act: where it is mounted, and who gets it over the network.
EXCLUDED = ("mountpoint", "sharenfs", "sharesmb")
LEAST_MEASURED = 10 * 10**6  # bytes of a stream whose pace says something


class RemoteRestored(Restored, frozen=True):
    """A dataset on its way back from another computer. ``rate`` in bytes a second, 0 for any number."""

    remote: Remote
    rate: int = 0
    hello: Hello = msgspec.field(default_factory=Hello)
    points: tuple[Point, ...] = ()

    @property
    def properties(self) -> dict[str, str]:
        # Files of another computer: none of them runs as root, and none is a device.
        return {**({} if self.is_volume else {"setuid": "off", "devices": "off"}), **super().properties}

    @property
    def is_foreign(self) -> bool:
        return True

    def receiver(self, decision: match.Decision) -> list[str]:
        argv = super().receiver(decision)
        if self.is_volume or decision.kind != "full":  # ZFS refuses to exclude what a volume does not have
            return argv
        return [*argv[:-1], *(word for key in EXCLUDED for word in ("-x", key)), argv[-1]]

    @property
    def sending_version(self) -> str:
        return self.hello.version_text

    def read_points(self) -> list[Point]:
        return list(self.points)

    def expected_size(self, decision: match.Decision) -> int:
        done = copies.read_token(decision.token).done if decision.token else 0
        return max(0, self.source.referenced - done)

    def most_bytes_a_second(self) -> int:
        return self.rate

    def sender(self, decision: match.Decision, *more: str) -> list[str]:
        return [
            *connection.ssh_argv(self.remote, self.words(decision), aes=self.hello.aes and connection.has_aes()),
            *more,
        ]

    def words(self, decision: match.Decision) -> tuple[str, ...]:
        name = self.source.name.removeprefix(f"{self.remote.root}/")
        token = (decision.token,) if decision.token else ()
        return ("send", name, str(self.guid), mode_of_part(self.flags), *token)


def mode_of_part(flags: tuple[str, ...]) -> str:
    """What larder-peer calls the flags of a stream."""
    return "raw" if "-w" in flags else "large" if flags else "plain"


class RemoteSource(msgspec.Struct):
    """The folder for copies on another computer, as what is restored from. ``listed``: the copies that were read."""

    remote: Remote
    hello: Hello
    listed: dict[str, RemoteCopy] = msgspec.field(default_factory=dict)

    @classmethod
    def ask(cls, key: str) -> Self:
        """Sign in there and see that copies can be sent back. Raises Unreachable, Refused with all that is missing."""
        remote = settings.find_remote(key)
        hello = say_hello(remote)
        Refused.unless_empty(answers.restore_problems(hello, remote))
        return cls(remote, hello)

    def read_tree(self, name: str) -> dict[str, RemoteCopy]:
        """A copy and those below it, by their names. Raises Refused where it is gone, Failed."""
        try:
            said = connection.ask(self.remote, ("tree", name), timeout=SECONDS_TO_CHANGE)
        except command.CommandFailed as failed:
            if "does not exist" in failed.said:
                raise Refused(
                    Reason(
                        "remote-copy-missing",
                        "The copy {copy} is no longer on {host}.",
                        copy=name,
                        host=self.remote.host,
                    )
                ) from failed
            raise Failed(
                Message("{host} does not show {name}", host=self.remote.host, name=name), failed.said
            ) from failed
        found = answers.parse_list(said, self.remote)
        return {one: copy for one, copy in found.items() if one == name or one.startswith(f"{name}/")}

    def bring(self, work: Work, one: Restored, planned: Collection[str]) -> int:
        """Receive one dataset, and say how many bytes were sent. ``planned``: every dataset that may arrive.
        What is not as it was asked for is destroyed again. Raises Refused, Failed, Cancelled."""
        if not isinstance(one, RemoteRestored):
            raise Failed(Message("That does not come from another computer"))
        there = self.listed[one.source.name.removeprefix(f"{self.remote.root}/")]
        points = tuple(Point(f"{one.source.name}@{short}", guid) for _txg, guid, short in there.snapshots)
        wanted = send_flags(read_features(one.target.split("/", 1)[0]), raw=one.raw, into_encrypted=True)
        flags = () if there.is_sent_plain and not one.raw else wanted
        # What is plain in a folder that is encrypted there is sent decrypted, which some versions of ZFS spoil.
        source = replace(one.source, encryption="on" if self.hello.is_encrypted and not one.raw else "off")
        one = replace(one, source=source, hello=self.hello, points=points, flags=flags)
        began = time.monotonic()
        try:
            moved = run_transfer(work, one, one.guid)
        except NotReceived as error:
            raise explain_failure(self.remote, error) from error
        try:
            check_arrived(one, planned)
        except Failed:
            discard_part(one.target, planned, work)
            raise
        if moved >= LEAST_MEASURED:
            pace = int(moved / max(time.monotonic() - began, 0.1))
            self.remote = replace(settings.find_remote(self.remote.id), pace=pace)
            settings.write_remote(self.remote)
        return moved


def check_arrived(one: RemoteRestored, planned: Collection[str]) -> None:
    """That nothing but the wanted snapshot came, no dataset below it and no property with it. Raises Failed."""
    host, name = one.remote.host, one.source.name
    argv = ["zfs", "get", "-H", "-s", "received", "-o", "property,value", "all", one.target]
    brought = command.run(argv, timeout=SECONDS_TO_CHANGE).stdout.splitlines()
    if other := [line.partition("\t")[0] for line in brought if line != "keylocation\tprompt"]:
        raise Failed(
            Message("{host} sent settings with {name}", host=host, name=name),
            Message("It was not put in place: {other}.", other=names_text(other, 5)),
        )
    argv = ["zfs", "list", "-H", "-o", "name", "-r", "-t", "filesystem,volume", one.target]
    more = set(command.run(argv, timeout=SECONDS_TO_CHANGE).stdout.splitlines()) - set(planned)
    found = [snapshot.guid for snapshot in list_snapshots.list_snapshots([one.target])]
    if more or found != [one.guid]:
        raise Failed(
            Message("{host} sent more of {name} than was asked for", host=host, name=name),
            Message("It was not put in place."),
        )


def explain_failure(remote: Remote, error: NotReceived) -> Failed:
    """The same with a sentence for what ssh, larder-peer or ZFS said, where that is known."""
    said = error.sender_said
    if error.sender_status == connection.NOT_SIGNED_IN:
        return connection.unreachable(remote, said)
    if "permission denied" in said:
        return Failed(
            Message("{user} may not send copies back", user=remote.user),
            Message(
                "As root on {host}: zfs allow -u {user} send {root}",
                host=remote.host,
                user=remote.user,
                root=remote.root,
            ),
        )
    if error.sender_status and error.sender_status > 0:
        return Failed(Message("{host} did not send the copy to its end", host=remote.host), said)
    if re.search(r"out of space|quota", error.said):
        return Failed(
            Message("The pool here is full"),
            Message("Make room, then start again. A restore goes on where it stopped."),
        )
    return error
