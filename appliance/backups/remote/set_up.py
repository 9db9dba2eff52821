"""Other computers that backups go to: add one, confirm its host key, test it, remove it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec.structs import replace

from appliance.backups import tasks
from appliance.backups.remote import connection, settings
from appliance.backups.remote.send_backup import lock_of
from appliance.backups.remote.try_remote import try_remote
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.facts.remote import Remote, fingerprint_of
from appliance.formatting import names_text, size_text
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, always, never


class RemoteOperation(Operation):
    """An operation on another computer, known by its id here."""

    remote: str

    def __post_init__(self) -> None:
        settings.check_key(self.remote)

    @property
    def subject(self) -> str:
        return self.remote

    def locks(self) -> tuple[str, ...]:
        return (lock_of(self.remote),)

    def find(self, facts: Facts) -> Remote:
        """Raises Refused where it was removed."""
        found = facts.remote(self.remote)
        if found is None:
            raise Refused(settings.remote_missing())
        return found

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.remote(self.remote) is None:
            yield settings.remote_missing()


class AddRemote(RemoteOperation, tag="add-remote"):
    """Note another computer, make a key for it, and ask it for its host key.
    Nothing is sent before that is confirmed."""

    needs_proof = never

    host: str
    user: str
    root: str
    port: int = 22

    def __post_init__(self) -> None:
        super().__post_init__()
        settings.check_host(self.host)
        settings.check_user(self.user)
        settings.check_remote_name(self.root)
        if not 1 <= self.port <= 65535:
            raise Refused(Reason("port-out-of-range", "Enter a port from 1 to 65535.", field="port"))

    @property
    def title(self) -> str:
        return Message("Add {host} for backups", host=self.host)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.remote(self.remote):
            yield Reason("remote-known", "That computer was added a moment ago.")
        same = (self.host, self.port, self.user, self.root)
        if any((one.host, one.port, one.user, one.root) == same for one in facts.remotes):
            yield Reason(
                "remote-twice", "Backups can already go to that folder on {host}.", field="root", host=self.host
            )
        yield from settings.check_room(facts.remotes)

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=Message(
                "Larder makes a key for {host} and asks for its host key. Nothing is sent yet.", host=self.host
            ),
            steps=(
                Step(
                    "key",
                    Message("Make a key for this computer"),
                    shlex.join(["ssh-keygen", "-t", "ed25519", "-f", str(settings.key_file(self.remote))]),
                    self.make,
                ),
                Step(
                    "host-key",
                    Message("Ask {host} for its host key", host=self.host),
                    shlex.join(["ssh-keyscan", "-p", str(self.port), "--", self.host]),
                    partial(fetch_key, self.remote),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("It can be removed again."),
        )

    def make(self, work: Work) -> None:
        public = settings.make_key(self.remote)
        settings.write_remote(Remote(self.remote, self.host, self.port, self.user, self.root, public_key=public))
        work.note(Message("Made a key for {user}@{host}.", user=self.user, host=self.host))

    def probe(self, step: str, facts: Facts) -> bool:
        found = facts.remote(self.remote)
        return found is not None and (step == "key" or bool(found.offered_key))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if step == "key":
            return Message("Nothing was added. Add it again.")
        return Message("It was added without its host key. Choose Test on its page to ask again.")


def fetch_key(key: str, work: Work) -> None:
    """Note the host key that the computer shows; where it does not answer, that is noted and nothing else."""
    remote = settings.find_remote(key)
    try:
        found = connection.fetch_host_key(remote.host, remote.port)
    except Failed as error:
        settings.write_remote(replace(remote, problem=explain_error(error)))
        work.note(explain_error(error))
        return
    if found != remote.host_key:
        settings.write_remote(replace(remote, offered_key=found, problem=""))
    work.note(
        Message("{host} shows the host key {fingerprint_of}.", host=remote.host, fingerprint_of=fingerprint_of(found))
    )


def host_key_other(remote: Remote) -> Reason:
    return Reason(
        "host-key-other",
        "{host} now shows another host key than the one that you looked at. Look at it again.",
        host=remote.host,
    )


class ConfirmHostKey(RemoteOperation, tag="confirm-host-key"):
    """From now on send to the computer with this host key.
    It decides where everybody's files go, so it needs the password."""

    needs_proof = always

    fingerprint: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.fingerprint.startswith("SHA256:") or len(self.fingerprint) != 50:
            raise Refused(Reason("fingerprint-invalid", "That is no host key."))

    @property
    def title(self) -> str:
        return Message("Confirm a host key")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        found = facts.remote(self.remote)
        if found and fingerprint_of(found.offered_key) != self.fingerprint:
            yield host_key_other(found)

    def plan(self, facts: Facts) -> Plan:
        remote = self.find(facts)
        changed = bool(remote.host_key)
        return Plan(
            title=Message("Confirm the host key of {host}", host=remote.host),
            summary=Message(
                "Backups go to the computer that has the host key {fingerprint}, and to no other.",
                fingerprint=self.fingerprint,
            ),
            steps=(
                Step("pin", Message("Keep the host key"), f"write {settings.known_hosts_file(self.remote)}", self.pin),
            ),
            identity={"operation": msgspec.to_builtins(self), "before": remote.host_key, "host": remote.host},
            warnings=(
                Message(
                    "{host} had the host key {fingerprint_of} before. Confirm the new one only if you know "
                    "why it changed, for example because that computer was reinstalled. Otherwise another "
                    "computer may be answering in its place, and would get your files.",
                    host=remote.host,
                    fingerprint_of=fingerprint_of(remote.host_key),
                ),
            )
            if changed
            else (),
            undo=Message("Remove the computer, and nothing is sent there any more."),
        )

    def pin(self, work: Work) -> None:
        remote = settings.find_remote(self.remote)
        if fingerprint_of(remote.offered_key) != self.fingerprint:
            raise Refused(host_key_other(remote))
        settings.pin_host_key(remote, remote.offered_key)
        work.note(Message("Larder recognises {host} by {fingerprint}.", host=remote.host, fingerprint=self.fingerprint))

    def probe(self, step: str, facts: Facts) -> bool:
        found = facts.remote(self.remote)
        return found is not None and fingerprint_of(found.host_key) == self.fingerprint

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The host key was not confirmed. Confirm it again.")


class TestRemote(RemoteOperation, tag="test-remote"):
    """Try whether the computer can take copies, and say what is missing."""

    __test__ = False  # no test of pytest's
    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Test another computer for backups")

    def plan(self, facts: Facts) -> Plan:
        remote = self.find(facts)
        words = connection.shown(remote, ("hello",))
        return Plan(
            title=Message("Test {host}", host=remote.host),
            summary=Message(
                "Larder asks {host} which system runs there and what this box may do on it. Nothing is changed.",
                host=remote.host,
            ),
            steps=(Step("test", Message("Ask {host}", host=remote.host), words, self.test),),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("Nothing is changed."),
        )

    def test(self, work: Work) -> None:
        if not settings.find_remote(self.remote).host_key:
            fetch_key(self.remote, work)
            remote = settings.find_remote(self.remote)
            if not remote.offered_key:
                raise Failed(remote.problem_text or Message("{host} shows no host key", host=remote.host))
            raise Failed(
                Message("{host} answers", host=remote.host),
                Message("Confirm its host key on its page, then test again."),
            )
        remote, hello = try_remote(self.remote)
        work.note(
            Message(
                "{host} has ZFS {version_text}, and {available} are free in {root}.",
                host=remote.host,
                version_text=hello.version_text,
                available=size_text(hello.available),
                root=remote.root,
            )
        )
        if remote.restore_problem:
            work.note(
                Message(
                    "Backups can go there, but nothing can be restored from there yet. {restore_problem}",
                    restore_problem=remote.restore_problem_text,
                )
            )
        if hello.may_destroy:
            work.note(
                Message(
                    "{user} may destroy copies there. That is more than backups need: see the page of this computer.",
                    user=hello.user,
                )
            )

    def probe(self, step: str, facts: Facts) -> bool:
        return False  # what it said is known only to the run itself

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return ""


class RemoveRemote(RemoteOperation, tag="remove-remote"):
    """Forget another computer and destroy the key for it. The copies there stay."""

    needs_proof = always

    @property
    def title(self) -> str:
        return Message("Remove another computer from backups")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        used = [one.name for one in facts.datasets if any(task.remote == self.remote for task in tasks.tasks_of(one))]
        if used:
            yield Reason(
                "remote-in-use",
                "{folders} is backed up there. Remove that backup first.",
                folders=names_text(used, 3),
            )

    def plan(self, facts: Facts) -> Plan:
        remote = self.find(facts)
        return Plan(
            title=Message("Remove {host}", host=remote.host),
            summary=Message(
                "This box can no longer sign in at {host}. The copies in {root} there stay.",
                host=remote.host,
                root=remote.root,
            ),
            steps=(
                Step(
                    "remove",
                    Message("Delete its settings and its key"),
                    f"rm {settings.key_file(self.remote)}",
                    self.remove,
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "host": remote.host},
            warnings=(
                Message("Remove this box on {host} too, under Backups, Received copies.", host=remote.host)
                if remote.paired
                else Message(
                    "Remove the line with the key {public_key} from authorized_keys on {host} too.",
                    public_key=remote.public_key[-20:],
                    host=remote.host,
                ),
            ),
            undo=Message("It can be added again, with a new key."),
        )

    def remove(self, work: Work) -> None:
        settings.remove_remote(self.remote)
        work.note(Message("Its key was destroyed."))

    def probe(self, step: str, facts: Facts) -> bool:
        return facts.remote(self.remote) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Remove it again.")
