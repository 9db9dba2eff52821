"""Take the place of a box that is lost: its users and groups with their numbers, passwords, keys
and shares, out of its record.

The record lies on a pool of that box, or beside its copies. Nothing that is here is changed: where a name or a number
means something else on this box, nothing is done. Every step can be done twice.
"""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator, Mapping
from datetime import datetime

import msgspec

from appliance import names, schedule
from appliance.datasets.encryption import key_store
from appliance.errors import LarderError, Reason, Refused, explain_error
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.box_record import BoxRecord
from appliance.facts.datasets import names_above
from appliance.facts.pool_reasons import missing_pool
from appliance.formatting import day_text
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, always, checked_plan
from appliance.recovery import bring_users, mail_password, records, seal
from appliance.recovery.box_secrets import BoxSecrets, parse_secrets
from appliance.shares import publish
from appliance.shares.approve import ApproveShares
from appliance.shares.iscsi import chap
from appliance.system import accounts
from appliance.system.host_name import read_host_name
from appliance.zfs import status

NAMED = 12


class Opened(msgspec.Struct):
    """What the first step tells the others."""

    secrets: BoxSecrets | None = None


class TakePlace(Operation, tag="take-place"):
    """Take the place of ``box``, whose record lies on ``pool``.
    ``sealed``: it has secrets, which the recovery phrase opens."""

    needs_proof = always  # users of another box get into shares
    settled = Message(
        "Larder was interrupted meanwhile. A check afterwards found that this box has taken the place of the other."
    )

    pool: str
    guid: int
    box: str
    sealed: bool

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)
        records.check_box(self.box)
        if not 0 < self.guid < 2**64:
            raise Refused(records.missing_box())

    @property
    def title(self) -> str:
        return Message("Take the place of a box by its record on {pool}", pool=self.pool)

    @property
    def subject(self) -> str:
        return self.pool

    def locks(self) -> tuple[str, ...]:
        return (self.pool, "accounts", "shares")

    def wants_secret(self) -> bool:
        return self.sealed

    def record_read(self) -> tuple[str, str]:
        return (self.pool, self.box)

    def load_extra_facts(self, facts: Facts) -> Facts:
        if facts.pool(self.pool) is None:
            return facts  # ``check`` says so
        return msgspec.structs.replace(facts, box_record=records.read_record(self.pool, self.box))

    # --- what speaks against it -----------------------------------------------------------------------------------
    def check(self, facts: Facts) -> Iterator[Reason]:
        pool, record = facts.pool(self.pool), facts.box_record
        if pool is None or pool.guid != self.guid:
            yield missing_pool(self.pool)
            return
        if record is None or record.box != self.box or record.sealed != self.sealed:
            yield records.missing_box()
            return
        if facts.properties_of(self.pool).get("readonly") == "on":
            yield records.read_only_pool(self.pool)
        mark = records.marks_of(facts.dataset(self.pool)).find(self.box)
        if self.box == key_store.box_mark() and not (mark and mark.by):
            yield Reason("record-of-this-box", "That is the record of this box itself.")
        yield from bring_users.collisions(record, facts)

    # --- what it does ---------------------------------------------------------------------------------------------
    def plan(self, facts: Facts) -> Plan:
        record = facts.box_record
        if record is None:
            raise Refused(records.missing_box())
        shares = self.shares_plan(record, facts)
        by_hand = Message(
            "No password comes back: {host} had no recovery phrase. Set a new one for each user.", host=record.host
        )
        return Plan(
            title=Message("Take the place of {host}", host=record.host),
            summary=Message(
                "This box gets the users and groups of {host} as they were on {day}, with the numbers that "
                "own their files.",
                host=record.host,
                day=day_text(datetime.fromtimestamp(record.written, schedule.box_zone())),
            ),
            steps=tuple(self.list_steps(record, facts, shares)),
            identity={"operation": msgspec.to_builtins(self), "record": record.text.decode()},
            warnings=(
                *(() if self.sealed else (by_hand,)),
                Message(
                    "If {host} still runs, switch it off for good first. It makes no more backups with the "
                    "pool {pool} afterwards.",
                    host=record.host,
                    pool=self.pool,
                ),
                *(shares.warnings if shares else ()),
            ),
            undo=Message("Users and shares can be removed again one by one."),
            details={**self.described(record, facts), **(shares.details if shares else {})},
        )

    def list_steps(self, record: BoxRecord, facts: Facts, shares: Plan | None) -> list[Step]:
        opened = Opened()
        steps = [
            *([self.open_step(opened)] if self.sealed else []),
            bring_users.users_step(record, facts),
            bring_users.groups_step(record, facts),
        ]
        if self.sealed:
            steps += [
                Step(
                    "passwords",
                    Message("Give the users their passwords"),
                    bring_users.PASSWORDS_TEXT,
                    lambda work: self.bring_passwords(record, opened, work),
                ),
                Step(
                    "keys",
                    Message("Store the keys of folders that are here"),
                    f"write {key_store.FOLDER}/…\nwrite {chap.FOLDER}/…\nwrite {mail_password.left_file(self.box)}",
                    lambda work: self.bring_keys(record, opened, work),
                ),
            ]
        if shares:
            steps.append(
                Step(
                    "shares",
                    Message("Serve the shares of its folders that are here"),
                    "\n".join(step.command_text for step in shares.steps),
                    self.serve,
                )
            )
        steps.append(
            Step(
                "mark",
                Message("Note on {pool} that this box has taken its place", pool=self.pool),
                shlex.join(["zfs", "set", f"{user_properties.BOX}=…", self.pool]),
                self.mark,
                (self.pool,),
            )
        )
        return steps

    def described(self, record: BoxRecord, facts: Facts) -> dict[str, str]:
        """What comes back, line by line."""
        here = {one.guid for one in facts.datasets}
        copied = [one.name for one in record.folders if one.guid not in here and "/" in one.name]
        lines = {
            Message("Users"): bring_users.listed(one.name for one in record.users),
            Message("Groups"): bring_users.listed(one.name for one in record.groups),
            Message("Passwords"): Message("those that they had") if self.sealed else "",
            Message("Restored afterwards"): bring_users.listed(copied),
            Message("Name of this box"): Message(
                "stays {name}. Change it under System if other computers look for {host}.",
                name=read_host_name(),
                host=record.host,
            ),
            Message("Backups"): Message("wait until you set them up again on this box"),
            Message("Settings"): Message("brought back afterwards, on the page of its record"),
        }
        return {name: value for name, value in lines.items() if value}

    def shares_plan(self, record: BoxRecord, facts: Facts) -> Plan | None:
        """What serving the shares of this pool means; None where there are none, or something speaks against it."""
        own = {one.guid for one in record.folders}
        if not any(one.pool == self.pool and one.guid in own for one in facts.datasets if not one.copy_of):
            return None
        here = [one.name for one in facts.accounts]
        coming = tuple(bring_users.account_of(one) for one in record.users if one.name not in here)
        groups = tuple(bring_users.group_of(one) for one in record.groups if facts.group(one.name) is None)
        later = msgspec.structs.replace(facts, accounts=(*facts.accounts, *coming), groups=(*facts.groups, *groups))
        try:
            return checked_plan(ApproveShares(pool=self.pool, guid=self.guid), later)
        except Refused:
            return None

    # --- steps ----------------------------------------------------------------------------------------------------
    def open_step(self, opened: Opened) -> Step:
        def open_secrets(work: Work) -> None:
            sealed = records.read_sealed(self.pool, self.box)
            found = parse_secrets(seal.open_sealed(sealed, work.secret(), field="secret"))
            if found.box != self.box:
                raise Refused(records.missing_box())
            opened.secrets = found

        return Step("open", Message("Open the secrets of the record"), "age --decrypt …", open_secrets)

    def bring_passwords(self, record: BoxRecord, opened: Opened, work: Work) -> None:
        if opened.secrets:
            bring_users.bring_passwords(record, opened.secrets, work)

    def bring_keys(self, record: BoxRecord, opened: Opened, work: Work) -> None:
        """Store what unlocks folders that are here, and those that a restore will bring out of their
        copies; and the secrets of the iSCSI targets that are here. What this box stores already may be
        newer than the record, and stays."""
        if opened.secrets is None:
            return
        here = {str(one.guid): one for one in status.read_datasets() if not one.copy_of}
        for guid, key in opened.secrets.keys.items():
            one = here.get(guid)
            if one and key_store.has_key(one.guid) and key_store.read_key(one.guid) != key:
                work.note(Message("{name} keeps the key that is stored here, which is another one", name=one.name))
            elif one:
                key_store.keep_key(one.name, one.guid, key)
                work.note(Message("The key of {name} is stored. Unlock it on its page", name=one.name))
        for original, key in keys_of_absent(record, opened.secrets.keys, here):
            if not key_store.has_key(original):
                key_store.store_key(original, key)
        if opened.secrets.mail:
            self.bring_mail_password(opened.secrets.mail, work)
        for guid, text in opened.secrets.chap.items():
            if guid in here and chap.read_secrets(int(guid)) is None:
                chap.store_secrets(int(guid), chap.parse_secrets(text))

    def bring_mail_password(self, password: str, work: Work) -> None:
        """Leave it for the pages, which use it once the mail settings of that box are brought back."""
        try:
            mail_password.leave_password(self.box, password)
        except OSError:  # in containers the pages' folder is not here
            work.note(Message("The password of the mail server was not taken over. Type it again under Notifications"))

    def serve(self, work: Work) -> None:
        """Serve them as ``ApproveShares`` does. What keeps them from it is said, and they are
        offered on the pool's page."""
        operation = ApproveShares(pool=self.pool, guid=self.guid)
        facts = msgspec.structs.replace(
            publish.agreed_facts(),
            datasets=status.read_datasets(),
            pools=status.read_pools(),
            accounts=accounts.read_accounts(),
            groups=accounts.read_groups(),
            shares=publish.configured_shares(),
        )
        try:
            for step in checked_plan(operation, facts).steps:
                step.run(work)
        except LarderError as error:
            work.note(
                Message(
                    "The shares were not switched on: {explain_error} They are offered on the page of {pool}",
                    explain_error=explain_error(error),
                    pool=self.pool,
                )
            )

    def mark(self, _work: Work) -> None:
        """The last step: the box that was replaced makes no more backups with this pool."""
        marks = records.read_marks(self.pool)
        if (mark := marks.find(self.box)) is None:
            raise Refused(records.missing_box())
        by = "" if self.box == key_store.box_mark() else read_host_name()
        records.set_mark(self.pool, marks, msgspec.structs.replace(mark, by=by))

    # --- after an interruption ------------------------------------------------------------------------------------
    def probe(self, step: str, facts: Facts) -> bool:
        root = facts.dataset(self.pool)
        mark = records.marks_of(root).find(self.box)
        own = self.box == key_store.box_mark()
        if mark and bool(mark.by) is not own:
            return True  # it is the last step
        record = facts.box_record
        return record is not None and step in {"users", "groups"} and bring_users.are_there(step, record, facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("What was taken over stays. Start it again: what is there already is only checked.")


def keys_of_absent(record: BoxRecord, keys: Mapping[str, str], here: Container[str]) -> Iterator[tuple[int, str]]:
    """For each encrypted folder of the record that is not here its guid and its key, or that of the nearest folder
    above it: one that is restored has another guid, and each copy is locked by itself."""
    guids = {one.name: str(one.guid) for one in record.folders}
    for one in record.folders:
        own_and_above = (one.name, *names_above(one.name))
        key = next((keys[guid] for name in own_and_above if (guid := guids.get(name, "")) in keys), "")
        if one.encrypted and key and str(one.guid) not in here:
            yield one.guid, key
