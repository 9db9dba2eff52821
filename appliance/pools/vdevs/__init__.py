"""Changes of a pool's shape: replace, attach, detach, add, expand, remove, online and offline.

Start at ``base``.
"""

from __future__ import annotations
