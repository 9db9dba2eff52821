"""Changes of a pool's vdevs: replace, attach, detach, add, expand, remove, online, offline and clear.

Start at ``base``.
"""

from __future__ import annotations
