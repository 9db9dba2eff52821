"""Set up an import of files from another NAS, confirm its host key, remove it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from appliance import names
from appliance.backups.remote import connection, settings
from appliance.datasets import reasons
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.facts.file_import import FileImport
from appliance.facts.remote import fingerprint_of
from appliance.imports.base import ImportOperation, check_folder, other_folder
from appliance.imports.settings import (
    MOST_IMPORTS,
    check_owners,
    check_password,
    find_import,
    remove_import,
    settings_file,
    write_import,
    write_password,
)
from appliance.imports.sources import SOURCES, has_password
from appliance.message import Message
from appliance.operation import Plan, Step, Work, always, never
from appliance.pools.import_reasons import pool_guid

# Who could answer in place of the other NAS, and what can be read on the way.
NOT_PROVED = {
    "smb": Message(
        "Nothing proves that it is the right computer: another one with its address could answer in its "
        "place, send other files, and try to find out the password from what it is sent. Use a user there "
        "who may only read."
    ),
    "nfs": Message(
        "Nothing proves that it is the right computer, and nothing is encrypted: anybody who can listen in "
        "this network can read and change what is copied. Use it only in a network that you trust."
    ),
    "rsync": Message(
        "Nothing proves that it is the right computer, and nothing is encrypted but the password: anybody "
        "who can listen in this network can read and change what is copied. Use it only in a network that "
        "you trust."
    ),
}


class AddImport(ImportOperation, tag="add-import"):
    """Note where files come from and which folder they go into. Nothing is copied.

    Over ssh it makes a key and asks for the host key, which is confirmed with the password later.
    The other kinds have no such key, so whose files get in here is decided now, and needs the password.
    """

    host: str
    user: str
    path: str
    dataset: str
    guid: int
    port: int = 22
    protocol: Literal["ssh", "smb", "nfs", "rsync"] = "ssh"
    existing: Literal["none", "keep", "newer"] = "none"
    owners: dict[str, str] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        SOURCES[self.protocol].check(self.host, self.user, self.path)
        if self.owners and not SOURCES[self.protocol].has_owners:
            raise Refused(
                Reason(
                    "import-owners-unknown",
                    "Files of a share have no owners that can be copied. Leave them out.",
                    field="owners",
                )
            )
        if not SOURCES[self.protocol].has_owner_names and not all(old.isdecimal() for old in self.owners):
            raise Refused(
                Reason(
                    "import-owners-numbers",
                    "NFS and rsync services know users by number only. Enter the number of each, for example "
                    "1026=anna.",
                    field="owners",
                )
            )
        check_owners(self.owners)
        names.existing_dataset(self.dataset)
        pool_guid(self.guid)
        if self.owners and self.existing != "none":
            # rsync would give folders that are here already to whoever has them over there.
            raise Refused(
                Reason(
                    "import-owners-beside",
                    "Owners can be set only in an empty folder. Leave them out, or choose an empty folder.",
                    field="owners",
                )
            )
        if not 1 <= self.port <= 65535:
            raise Refused(Reason("port-out-of-range", "Enter a port from 1 to 65535.", field="port"))

    @property
    def title(self) -> str:
        return Message("Set up an import from {host}", host=self.host)

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        return not self.as_task().has_host_key

    def wants_secret(self) -> bool:
        return has_password(self.as_task())

    def check_secret(self, text: str) -> str:
        return check_password(text)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.file_import(self.task) or facts.remote(self.task):
            yield Reason("import-known", "That import was set up a moment ago.")
        if len(facts.imports) >= MOST_IMPORTS:
            yield Reason("imports-too-many", "There can be at most {most} imports. Remove old ones.", most=MOST_IMPORTS)
        for name in self.owners.values():
            if not facts.account(name):
                yield reasons.user_missing(name).with_field("owners")
        dataset = facts.dataset(self.dataset)
        yield from check_folder(dataset, self.dataset, facts)
        if dataset and dataset.guid != self.guid:
            yield other_folder(self.as_task())

    def as_task(self) -> FileImport:
        return FileImport(
            self.task,
            self.host,
            self.port,
            self.user,
            self.path,
            self.dataset,
            self.guid,
            self.existing,
            tuple(self.owners.items()),
            protocol=self.protocol,
        )

    def plan(self, facts: Facts) -> Plan:
        if not self.as_task().has_host_key:
            return self.plan_without_key()
        return Plan(
            summary=Message(
                "Larder makes a key for {host} and asks for its host key. Nothing is copied yet.", host=self.host
            ),
            steps=(
                Step(
                    "key",
                    Message("Make a key for this import"),
                    shlex.join(["ssh-keygen", "-t", "ed25519", "-f", str(settings.key_file(self.task))]),
                    self.make,
                ),
                Step(
                    "host-key",
                    Message("Ask {host} for its host key", host=self.host),
                    shlex.join(["ssh-keyscan", "-p", str(self.port), "--", self.host]),
                    self.fetch,
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("It can be removed again."),
        )

    def plan_without_key(self) -> Plan:
        task = self.as_task()
        return Plan(
            summary=Message(
                "Larder notes where the files come from. Afterwards choose Test on the page of the import: "
                "it counts them. Nothing is copied yet."
            ),
            steps=(Step("store", Message("Store the settings"), f"write {settings_file(self.task)}", self.store),),
            identity={"operation": msgspec.to_builtins(self)},
            details={Message("From"): task.source, Message("To"): self.dataset},
            warnings=(NOT_PROVED[self.protocol],),
            undo=Message("It can be removed again."),
        )

    def store(self, work: Work) -> None:
        if self.wants_secret():
            write_password(self.task, work.secret())
        write_import(self.as_task())
        work.note(Message("The import can be tested on its page."))

    def make(self, work: Work) -> None:
        write_import(replace(self.as_task(), public_key=settings.make_key(self.task)))
        work.note(Message("Made a key for {user}@{host}.", user=self.user, host=self.host))

    def fetch(self, work: Work) -> None:
        fetch_key(self.task, work)

    def probe(self, step: str, facts: Facts) -> bool:
        found = facts.file_import(self.task)
        return found is not None and (step in {"key", "store"} or bool(found.offered_key))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if step in {"key", "store"}:
            return Message("Nothing was set up. Set it up again.")
        return Message("It was set up without the host key. Choose Test on its page to ask again.")


def fetch_key(key: str, work: Work) -> None:
    """Note the host key that the other NAS shows; where it does not answer, that is noted and nothing else."""
    task = find_import(key)
    try:
        found = connection.fetch_host_key(task.host, task.port)
    except Failed as error:
        write_import(replace(task, problem=explain_error(error)))
        work.note(explain_error(error))
        return
    offered = "" if found == task.host_key else found
    write_import(replace(task, offered_key=offered, problem=""))
    work.note(
        Message("{host} shows the host key {fingerprint_of}.", host=task.host, fingerprint_of=fingerprint_of(found))
    )


class ConfirmImportKey(ImportOperation, tag="confirm-import-key"):
    """From now on copy from the computer with this host key, and from no other.
    It decides whose files get in here, so it needs the password."""

    needs_proof = always

    fingerprint: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.fingerprint.startswith("SHA256:") or len(self.fingerprint) != 50:
            raise Refused(Reason("fingerprint-invalid", "That is no host key."))

    @property
    def title(self) -> str:
        return Message("Confirm the host key of another NAS")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        found = facts.file_import(self.task)
        if found and fingerprint_of(found.offered_key) != self.fingerprint:
            yield host_key_other(found)

    def plan(self, facts: Facts) -> Plan:
        task = self.find(facts)
        before = fingerprint_of(task.host_key)
        return Plan(
            title=Message("Confirm the host key of {host}", host=task.host),
            summary=Message(
                "Files are copied from the computer that has the host key {fingerprint}, and from no other.",
                fingerprint=self.fingerprint,
            ),
            steps=(
                Step("pin", Message("Store the host key"), f"write {settings.known_hosts_file(self.task)}", self.pin),
            ),
            identity={"operation": msgspec.to_builtins(self), "before": task.host_key, "host": task.host},
            warnings=(
                Message(
                    "{host} had the host key {before} before. Confirm the new one only if you know why it "
                    "changed, for example because it was reinstalled. Otherwise another computer may be "
                    "answering in its place.",
                    host=task.host,
                    before=before,
                ),
            )
            if before
            else (),
            undo=Message("Remove the import, and nothing more is copied from there."),
        )

    def pin(self, work: Work) -> None:
        task = find_import(self.task)
        if fingerprint_of(task.offered_key) != self.fingerprint:
            raise Refused(host_key_other(task))
        settings.write_known_host(self.task, task.offered_key)
        write_import(replace(task, host_key=task.offered_key, offered_key="", problem="", tested=None, found=None))
        work.note(Message("Larder recognises {host} by {fingerprint}.", host=task.host, fingerprint=self.fingerprint))

    def probe(self, step: str, facts: Facts) -> bool:
        found = facts.file_import(self.task)
        return found is not None and fingerprint_of(found.host_key) == self.fingerprint

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The host key was not confirmed. Confirm it again.")


def host_key_other(task: FileImport) -> Reason:
    return Reason(
        "host-key-other",
        "{host} now shows another host key than the one that you looked at. Look at it again.",
        host=task.host,
    )


class RemoveImport(ImportOperation, tag="remove-import"):
    """Forget an import and destroy its key or password. What was copied stays."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Remove an import")

    def plan(self, facts: Facts) -> Plan:
        task = self.find(facts)
        return Plan(
            title=Message("Remove the import from {host}", host=task.host),
            summary=Message(
                "This box forgets {host} and how to sign in there. The files that were copied to {dataset} stay.",
                host=task.host,
                dataset=task.dataset,
            ),
            steps=(
                Step(
                    "remove",
                    Message("Delete its settings, its report and its key or password"),
                    f"rm {settings_file(self.task)}",
                    self.remove,
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "host": task.host},
            warnings=()
            if not task.has_host_key
            else (
                Message(
                    "Remove the line with the key {public_key} from authorized_keys on {host} too.",
                    public_key=task.public_key[-20:],
                    host=task.host,
                ),
            ),
            undo=Message("It can be set up again."),
        )

    def remove(self, work: Work) -> None:
        remove_import(self.task)
        work.note(Message("Its key or password was destroyed."))

    def probe(self, step: str, facts: Facts) -> bool:
        return facts.file_import(self.task) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Remove it again.")
