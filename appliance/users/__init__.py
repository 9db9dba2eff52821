"""The users and groups of shares: create, rename, disable, remove, home folders.

It may import ``datasets``, ``files``, ``shares``, ``snapshots``, ``zfs`` and the ground. Start at ``accounts``.
"""

from __future__ import annotations
