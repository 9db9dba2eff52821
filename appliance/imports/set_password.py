"""Change the password that an import from a share or service signs in with."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.imports.base import ImportOperation
from appliance.imports.settings import check_password, find_import, password_file, write_import, write_password
from appliance.imports.sources import has_password
from appliance.message import Message
from appliance.operation import Plan, Step, Work, never


class SetImportPassword(ImportOperation, tag="set-import-password"):
    """Store another password. It is sent only to the computer that the import already signs in
    at, so it needs no proof."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Change the password of an import")

    def wants_secret(self) -> bool:
        return True

    def check_secret(self, text: str) -> str:
        return check_password(text)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        task = facts.file_import(self.task)
        if task and not has_password(task):
            yield Reason("import-without-password", "This import signs in without a password.")

    def plan(self, facts: Facts) -> Plan:
        task = self.find(facts)
        return Plan(
            summary=Message(
                "From now on Larder signs in at {host} as {user} with this password.", host=task.host, user=task.user
            ),
            steps=(Step("store", Message("Store the password"), f"write {password_file(self.task)}", self.store),),
            identity={"operation": msgspec.to_builtins(self), "host": task.host, "user": task.user},
            undo=Message("It can be changed again."),
        )

    def store(self, work: Work) -> None:
        write_password(self.task, work.secret())
        write_import(replace(find_import(self.task), problem=""))
        work.note(Message("The import can be tested on its page."))

    def probe(self, step: str, facts: Facts) -> bool:
        return False  # only root can read it

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The password may not have been changed. Change it again.")
