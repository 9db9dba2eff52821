"""The keys that this box stores, tried on copies that were sent encrypted.
A copy has the key of its original's root."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from appliance import command
from appliance.backups import copies
from appliance.datasets.encryption import key_store
from appliance.datasets.encryption.unlock import encode_key
from appliance.errors import Failed, LarderError
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.message import Message

SECONDS = 300  # a passphrase is made slow to try on purpose


class StoredKeys(msgspec.Struct, frozen=True):
    """``roots``: by the guid of an original, the dataset whose key opens it."""

    roots: dict[int, Dataset]

    @classmethod
    def of(cls, parts: Iterable[tuple[Dataset, Dataset]], facts: Facts) -> StoredKeys:
        found = {one.guid: facts.dataset(one.encryption_root) for one, _copy in parts if one.encryption != "off"}
        return cls({guid: root for guid, root in found.items() if root})

    def should_have(self, original: Dataset) -> bool:
        """Whether the mark on its root says that its key is stored: what every process can see."""
        return original.guid in self.roots and key_store.is_marked(self.roots[original.guid])

    def has(self, original: Dataset) -> bool:
        """Whether the key of this dataset is stored. Only root can see that."""
        return original.guid in self.roots and key_store.has_key(self.roots[original.guid].guid)

    def load(self, original: Dataset, copy: str, *, only_try: bool = False) -> bool:
        """Load the key of a copy, or only see whether it would open it."""
        root = self.roots[original.guid]
        return try_stored_key(root.guid, copy, root.key_format, only_try=only_try)

    def unlock(self, original: Dataset, copy: str) -> None:
        """Unlock a copy with the stored key. Raises Failed with the reason where it stays locked."""
        if not self.has(original):
            raise Failed(Message("this box does not store its key"))
        if not self.load(original, copy):
            raise Failed(Message("the key that this box stores does not open it"))

    @contextmanager
    def opened(self, original: Dataset, copy: Dataset) -> Iterator[None]:
        """A copy whose files can be read meanwhile. One that is locked gets the stored key, and is locked again
        afterwards. Raises Failed where it stays locked."""
        if not copy.locked:
            yield
            return
        self.unlock(original, copy.name)
        try:
            yield
        finally:
            command.run(["zfs", "unload-key", "--", copy.name], timeout=SECONDS, accept=range(256))


def unlock_restored(dataset: str, guids: Iterable[int]) -> bool:
    """Unlock a dataset that came out of a copy with the first key under one of these guids that opens it, and store
    that under its own guid: it is unlocked at each start, as its original was."""
    values = copies.read_values(dataset, ("guid", "keyformat"))
    own, key_format = int(values["guid"]), values.get("keyformat", "")
    found = (guid for guid in guids if key_store.has_key(guid))
    opens = next((guid for guid in found if try_stored_key(guid, dataset, key_format, only_try=True)), None)
    if opens is None:
        return False
    # Before it is unlocked: cut off in between, the next try finds it locked still, and does all of this again.
    key_store.keep_key(dataset, own, key_store.read_key(opens))
    return try_stored_key(own, dataset, key_format, only_try=False)


def try_stored_key(guid: int, dataset: str, key_format: str, *, only_try: bool) -> bool:
    """Whether the key that is stored under ``guid`` opens a dataset; false where none can be read. As ``try_key``."""
    try:
        given = encode_key(key_store.read_key(guid), key_format)
    except (OSError, LarderError):
        return False
    return try_key(dataset, given, only_try=only_try)


def try_key(copy: str, given: str | bytes, *, only_try: bool) -> bool:
    """Whether a key opens a copy. With ``only_try`` it is not loaded (zfs-load-key(8), -n)."""
    argv = ["zfs", "load-key", *(["-n"] if only_try else []), "-L", "prompt", "--", copy]
    return command.run(argv, timeout=SECONDS, given=given, accept=range(256)).status == 0
