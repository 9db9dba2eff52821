"""Operations on datasets, which pages call folders: create, rename, mount, destroy, settings,
quotas, permissions, volumes.

``encryption`` handles their keys. It may import ``files``, ``pools``, ``shares``, ``snapshots``, ``zfs`` and the
ground. Start at ``create.CreateDataset``.
"""

from __future__ import annotations
