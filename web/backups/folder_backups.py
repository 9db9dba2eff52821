"""The folders that somebody would miss, each with its backups."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from web.backups.status import BackupStatus


class FolderBackups(msgspec.Struct, frozen=True):
    """A folder of a pool's top with its backups; ``above``: a backup of a folder above it holds it too."""

    dataset: Dataset
    backups: list[BackupStatus] = msgspec.field(default_factory=list)
    above: str = ""

    @property
    def key(self) -> str:
        return str(self.dataset.guid)


def read_folders(facts: Facts, statuses: Iterable[BackupStatus]) -> list[FolderBackups]:
    """Each folder at the top of a pool, and each with backups of its own: what somebody would miss."""
    own: dict[int, list[BackupStatus]] = {}
    for status in statuses:
        own.setdefault(status.dataset.guid, []).append(status)
    covering = [status.dataset.name for status in statuses if status.task.below]
    found = []
    for one in facts.datasets:
        if one.copy_of or one.scratch or not (one.name.count("/") == 1 or one.guid in own):
            continue
        above = next((name for name in covering if one.name.startswith(f"{name}/")), "")
        found.append(FolderBackups(one, own.get(one.guid, []), above))
    return found
