"""At each start, as root, before shares are served: unlock datasets with the stored keys. Nothing waits for it."""

from __future__ import annotations

import logging
import sys

from appliance.datasets.encryption import unlock
from appliance.errors import LarderError, explain_error
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.zfs import status

log = logging.getLogger(__name__)


class JournalWork:
    """A Work that writes notes to the system's journal and ignores the rest."""

    def progress(self, percent: int, phrase: str) -> None: ...

    def note(self, text: str) -> None:
        log.info("%s", text)

    def secret(self) -> str:
        raise NotImplementedError

    def stop_if_asked(self) -> None: ...


def main() -> None:
    """Unlock what the stored keys unlock. Exit with status 1 if one failed."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if not status.is_module_loaded():
        return
    work, unread = JournalWork(), list[str]()
    facts = Facts(datasets=status.read_each_pool(unread.append))
    failures = len(unread)
    for text in unread:
        work.note(text)
    for dataset in facts.datasets:
        if not (dataset.locked and dataset.encryption_root == dataset.name):
            continue
        try:
            if unlock.unlock_with_stored_key(dataset):
                work.note(Message("{dataset} is unlocked with the stored key", dataset=dataset.name))
                for text in unlock.explain_unmounted(facts, dataset.name):
                    work.note(text)
                unlock.mount_datasets(
                    [member for member in unlock.mountable_datasets(facts, dataset.name) if not member.mounted], work
                )
        except LarderError as error:
            failures += 1
            work.note(f"{dataset.name}: {explain_error(error)}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
