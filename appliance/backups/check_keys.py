"""See whether the keys that are at hand open the copies of encrypted folders. Nothing is unlocked by it.

A copy of an encrypted folder travels without its key. If the passphrase in the drawer turns out after a fire
to be that of another folder, everything is lost. So keys are tried before: those that this box stores by
schedule, others when typed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

import msgspec

from appliance.backups.base import BackupOperation
from appliance.backups.restore_folder import is_raw
from appliance.backups.stored_keys import StoredKeys, try_key
from appliance.backups.verify_backup import result_line
from appliance.datasets.encryption.unlock import KEY_FILES, encode_key
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.message import Message
from appliance.operation import Plan, Step, Work, never

PREFIX = "keys "  # of the note that holds the result, for whoever keeps it
SHOWN = 5


class KeyCheck(msgspec.Struct, frozen=True):
    """What a check found. ``opened``: how many copies; ``wrong``: originals whose stored key does not open
    the copy; ``untried``: those for which no key was at hand. ``more_wrong`` and ``more_untried``: how
    many of these are not named."""

    opened: int
    of: int
    wrong: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    more_wrong: int = 0
    more_untried: int = 0


class CheckBackupKeys(BackupOperation, tag="check-backup-keys"):
    """Try the stored keys, or with ``typed`` one that somebody gives, on every copy that was sent encrypted."""

    needs_proof = never

    typed: bool = False

    @property
    def title(self) -> str:
        return Message("Try the key on the backup of {dataset}", dataset=self.dataset)

    def wants_secret(self) -> bool:
        return self.typed

    def copies(self, facts: Facts) -> list[tuple[Dataset, Dataset]]:
        """Each encrypted folder that has a copy, with its copy."""
        return [(one, copy) for one, copy in self.copied_folders(facts) if is_raw(copy)]

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if not self.copies(facts):
            yield Reason(
                "backup-not-encrypted",
                "No copy of {dataset} is encrypted with the key of its original.",
                dataset=self.dataset,
            )

    def plan(self, facts: Facts) -> Plan:
        found = self.copies(facts)
        argvs = [shlex.join(["zfs", "load-key", "-n", "-L", "prompt", "--", root_of(copy)]) for _one, copy in found]
        copies = (
            Message("1 encrypted copy") if len(found) == 1 else Message("{count} encrypted copies", count=len(found))
        )
        what = Message("The key that you give") if self.typed else Message("The key that this box stores")
        return Plan(
            summary=Message("{what} is tried on {copies}. Nothing is unlocked.", what=what, copies=copies),
            steps=(
                Step(
                    "try",
                    Message("Try it on each copy"),
                    "\n".join(argvs),
                    partial(self.try_all, found, StoredKeys.of(found, facts)),
                    (self.target,),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "datasets": [copy.guid for _one, copy in found]},
            undo=Message("Nothing is changed."),
            key_file=all(copy.key_format in KEY_FILES for _one, copy in found),
        )

    def try_all(self, found: list[tuple[Dataset, Dataset]], keys: StoredKeys, work: Work) -> None:
        secret = work.secret() if self.typed else ""
        opened, wrong, untried = 0, list[str](), list[str]()
        for one, copy in found:
            work.stop_if_asked()
            if keys.has(one):
                if keys.load(one, root_of(copy), only_try=True):
                    opened += 1
                else:
                    wrong.append(one.name)
            elif self.typed and self.opens(copy, secret):
                opened += 1
            else:
                untried.append(one.name)
        more_wrong, more_untried = max(0, len(wrong) - SHOWN), max(0, len(untried) - SHOWN)
        result = KeyCheck(opened, len(found), tuple(wrong[:SHOWN]), tuple(untried[:SHOWN]), more_wrong, more_untried)
        work.note(result_line(PREFIX, result))
        work.note(Message("{opened} of {count} copies open.", opened=opened, count=len(found)))
        if wrong:
            raise Failed(
                Message("The stored key does not open the copy of {wrong}", wrong=wrong[0]),
                Message("Store the right key, and try again."),
            )
        if untried and self.typed:
            raise Failed(
                Message("This key does not open the copy of {untried}", untried=untried[0]),
                Message("Check whether it is the right one."),
            )

    @staticmethod
    def opens(copy: Dataset, secret: str) -> bool:
        """Whether what was typed opens a copy. What cannot be a key of its format does not."""
        try:
            given = encode_key(secret, copy.key_format)
        except Refused:
            return False
        return try_key(root_of(copy), given, only_try=True)

    def probe(self, step: str, facts: Facts) -> bool:
        return False  # that a key was tried can be seen nowhere

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Nothing was changed. Try it again.")


def root_of(copy: Dataset) -> str:
    """The dataset whose key opens a copy; each that was received encrypted is its own."""
    return copy.encryption_root or copy.name
