"""Operations on datasets, which pages call folders: create, rename, mount, destroy, settings, quotas, permissions, volumes.

``encryption`` handles their keys. It may import ``zfs``, ``snapshots``, ``shares``, ``files`` and the ground. Start at
``create.CreateDataset``.
"""

from __future__ import annotations
