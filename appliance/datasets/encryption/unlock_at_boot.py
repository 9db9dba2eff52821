"""At each start, as root: open with the keys that the box keeps, before shares are served. Nothing waits for it."""

from __future__ import annotations

import logging
import sys

from appliance.datasets.encryption import unlock
from appliance.errors import LarderError, explain
from appliance.facts.box import Facts
from appliance.zfs import status

log = logging.getLogger(__name__)


class JournalWork:
    """The Work of somebody who only wants to read notes in the system's journal."""

    def progress(self, percent: int, phrase: str) -> None: ...

    def note(self, text: str) -> None:
        log.info("%s", text)

    def secret(self) -> str:
        raise NotImplementedError

    def stop_if_asked(self) -> None: ...


def main() -> None:
    """Open what can be opened; one that does not open keeps no other closed."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if not status.loaded():
        return
    facts, work, bad = Facts(datasets=status.read_datasets()), JournalWork(), 0
    for one in facts.datasets:
        if not (one.locked and one.encryption_root == one.name):
            continue
        try:
            if unlock.unlock_with_stored_key(one):
                work.note(f"{one.name} is unlocked by the key that this box keeps")
                for text in unlock.explain_unmounted(facts, one.name):
                    work.note(text)
                unlock.mount_datasets(
                    [member for member in unlock.mountable_datasets(facts, one.name) if not member.mounted], work
                )
        except LarderError as error:
            bad += 1
            work.note(f"{one.name}: {explain(error)}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
