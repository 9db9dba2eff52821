"""Keys of encrypted datasets: lock, unlock, change, store on the box.

Start at ``unlock``.
"""

from __future__ import annotations
