"""What is done to datasets, which people see as folders: create, rename, mount, destroy, settings, quotas, rights, volumes.

``encryption`` is their keys. It may import ``zfs``, ``snapshots``, ``shares``, ``files`` and the ground. Start at
``create.CreateDataset``.
"""

from __future__ import annotations
