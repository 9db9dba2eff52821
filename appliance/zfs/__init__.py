"""The ZFS adapter: libzfs_core, what ``zpool`` and ``zfs`` print as facts, mounting.

No operation is here. It may import ``files``, ``layout`` and the ground. Start at ``status``, ``libzfs``.
"""

from __future__ import annotations
