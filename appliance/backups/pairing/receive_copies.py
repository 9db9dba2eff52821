"""Make the folder that the backups of another Larder come to, and let larder-receive add
copies to it and nothing else."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from appliance import command, names
from appliance.backups import copies
from appliance.backups.pairing import receivers
from appliance.backups.pairing.base import ReceiverOperation
from appliance.backups.pairing.set_retention import check_days, kept_text, silence_text
from appliance.backups.remote import answers, instructions, settings
from appliance.backups.tasks import HOME
from appliance.datasets import reasons
from appliance.datasets.create import LEAST_LIMIT
from appliance.errors import Failed, Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset
from appliance.facts.kept_copies import Keep
from appliance.facts.pool_reasons import missing_pool, stopped_pool
from appliance.facts.receiver import DAYS, Receiver
from appliance.formatting import size_text
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, always, command_step

YES = "yes"
READ_BACK = ("guid", *answers.ROOT_OFF, user_properties.RECEIVES)


def receives(dataset: Dataset) -> bool:
    """Whether it is a folder that was made here for the copies of another Larder."""
    noted = dataset.properties.get(user_properties.RECEIVES)
    return noted is not None and noted.source == "local" and noted.value == YES


class ReceiveCopies(ReceiverOperation, tag="receive-copies"):
    """Make the folder for another Larder's copies. It opens a way in, so it needs the password.
    ``limit`` in bytes, 0 for none. ``keep`` and ``days`` as in SetReceivedRetention.

    A folder whose pairing was removed is used again, with the copies that are in it.
    """

    needs_proof = always

    pool: str
    name: str
    limit: int = 0
    keep: Keep | None = None
    days: int = DAYS

    def __post_init__(self) -> None:
        super().__post_init__()
        names.existing_pool(self.pool)
        if "/" in self.name:
            raise Refused(Reason("name-with-slash", "A name has no slash.", field="name"))
        settings.check_remote_name(self.name, field="name")
        settings.check_remote_name(self.root, field="pool")
        check_days(self.days)
        if self.limit and not LEAST_LIMIT <= self.limit < 2**62:
            raise Refused(
                Reason("limit-too-small", "A limit is at least 1 MiB. Leave it empty for no limit.", field="limit")
            )

    @property
    def root(self) -> str:
        return f"{self.pool}/{HOME}/{self.name}"

    @property
    def title(self) -> str:
        return Message("Receive copies in {root}", root=self.root)

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), self.pool)

    def check(self, facts: Facts) -> Iterator[Reason]:
        pool, top, now = facts.pool(self.pool), facts.dataset(self.pool), facts.dataset(self.root)
        if pool is None or top is None:
            yield missing_pool(self.pool).with_field("pool")
            return
        if pool.state == "SUSPENDED":
            yield stopped_pool(pool.name).with_field("pool")
        if top.locked:
            yield reasons.dataset_locked(self.pool).with_field("pool")
        if facts.receiver(self.receiver):
            yield Reason("receiver-known", "That pairing was made a moment ago.")
        if len(facts.receivers) >= receivers.MOST_RECEIVERS:
            yield Reason(
                "receivers-too-many",
                "At most {most} other Larders can be paired. Remove one first.",
                most=receivers.MOST_RECEIVERS,
            )
        if any(one.root == self.root for one in facts.receivers):
            yield Reason(
                "receiver-root-used",
                "{root} already receives copies. Choose another name, or remove that pairing first.",
                field="name",
                root=self.root,
            )
        elif now is not None and not receives(now):
            yield reasons.dataset_exists(self.root)

    def plan(self, facts: Facts) -> Plan:
        known = facts.dataset(self.root)
        home = copies.missing_home(self.root, facts)
        limited = Message(" They can use at most {limit}.", limit=size_text(self.limit)) if self.limit else ""
        kept = Message(" The copies that are in it stay.") if known else ""
        allow = instructions.allow_argv(receivers.USER, self.root)
        return Plan(
            summary=join_messages(
                [
                    Message(
                        "Copies from one other Larder are received in {root}.{limited}{kept} Afterwards this "
                        "box shows a code, which you type there.",
                        root=self.root,
                        limited=limited,
                        kept=kept,
                    ),
                    kept_text(self.keep),
                    silence_text(self.days),
                ]
            ),
            steps=(
                Step("server", Message("Look for the ssh server of this box"), "sshd -T", self.look_for_server),
                *(
                    [command_step("home", Message("Create {pool}/{home}", pool=self.pool, home=HOME), home)]
                    if home
                    else []
                ),
                command_step(
                    "folder",
                    Message(
                        "{what} {root} for copies", what=Message("Keep") if known else Message("Create"), root=self.root
                    ),
                    self.folder_argv(known),
                    affects=[self.root],
                    undo=Message("It can be destroyed again"),
                ),
                command_step(
                    "rights",
                    Message("Allow copies to be added, but nothing to be destroyed or changed"),
                    allow,
                    affects=[self.root],
                    undo=shlex.join(["zfs", "unallow", *allow[2:]]),
                ),
                Step(
                    "note",
                    Message("Look at the folder again and note the pairing"),
                    f"write {receivers.receiver_file(self.receiver)}",
                    self.note,
                ),
            ),
            identity={
                "operation": msgspec.to_builtins(self),
                "pool": facts_guid(facts, self.pool),
                "known": known.guid if known else 0,
            },
            warnings=self.warnings(known),
            undo=Message("Remove the pairing, and nobody is let in any more. The copies stay."),
        )

    def warnings(self, known: Dataset | None) -> tuple[str, ...]:
        opened = Message(
            "The box that you pair can sign in as {user} by ssh. It can add copies in this folder and read "
            "those that are in it, to restore them. It cannot destroy copies, nor reach anything else.",
            user=receivers.USER,
        )
        old = Message(
            "Copies that are in {root} already and are no longer kept by this are destroyed within minutes.",
            root=self.root,
        )
        full = Message("Without a limit, the other box can fill the pool {pool}.", pool=self.pool)
        return (opened, *(() if self.limit else (full,)), *((old,) if known and self.keep else ()))

    def folder_argv(self, known: Dataset | None) -> list[str]:
        own = {user_properties.COPY_OF: CopyMark(0, raw=False).text, user_properties.RECEIVES: YES}
        quota = {"quota": str(self.limit) if self.limit else "none"}
        if known is None:
            return instructions.create_argv(self.root, {**own, **(quota if self.limit else {})})
        wanted = {"canmount": "off", **answers.ROOT_OFF, **own, **quota}
        return ["zfs", "set", *(f"{key}={value}" for key, value in wanted.items()), self.root]

    def look_for_server(self, work: Work) -> None:
        receivers.check_user()
        port, _key = receivers.read_server()
        work.note(Message("The ssh server of this box listens on port {port}.", port=port))

    def note(self, work: Work) -> None:
        said = command.run(["zfs", "get", "-H", "-p", "-o", "property,value", ",".join(READ_BACK), self.root]).stdout
        found = dict(line.split("\t", 1) for line in said.splitlines() if "\t" in line)
        wanted = {**answers.ROOT_OFF, user_properties.RECEIVES: YES}
        wrong = [key for key, value in wanted.items() if found.get(key) != value]
        if wrong or not found.get("guid", "").isdecimal():
            raise Failed(
                Message("{root} does not have the settings that Larder gave it", root=self.root),
                Message("Different: {names}.", names=", ".join(wrong) or "guid"),
            )
        lines = command.run(["zfs", "allow", self.root]).stdout.splitlines()
        granted = set(answers.rights_of(lines, receivers.USER, ()))
        if missing := [right for right in instructions.RIGHTS.split(",") if right not in granted]:
            raise Failed(
                Message("{user} may not add copies to {root}", user=receivers.USER, root=self.root),
                Message("Missing: {names}.", names=", ".join(missing)),
            )
        if extra := granted & {"destroy", "rollback", "receive", "rename", "promote"}:
            raise Failed(
                Message("{user} could destroy copies in {root}", user=receivers.USER, root=self.root),
                Message(
                    "Take these rights away: zfs unallow -u {user} {names} {root}",
                    user=receivers.USER,
                    names=",".join(sorted(extra)),
                    root=self.root,
                ),
            )
        made = datetime.now(UTC).replace(microsecond=0)
        receivers.write_receiver(
            Receiver(self.receiver, self.root, int(found["guid"]), made, keep=self.keep, days=self.days)
        )
        work.note(Message("Show a code next, and type it on the other Larder."))

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "server":
            return True  # it changes nothing
        if step == "home":
            return facts.dataset(f"{self.pool}/{HOME}") is not None
        if step == "folder":
            found = facts.dataset(self.root)
            return found is not None and receives(found)
        return facts.receiver(self.receiver) is not None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.dataset(self.root) is None:
            return Message("Nothing was created. Start it again.")
        return Message("Nobody is let in. Start it again with the same name: {root} is used as it is.", root=self.root)


def facts_guid(facts: Facts, pool: str) -> int:
    found = facts.pool(pool)
    return found.guid if found else 0
