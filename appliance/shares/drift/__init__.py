"""Files of Larder's that somebody changed by hand: found, read as settings, adopted or overwritten.

Start at ``detect``.
"""

from __future__ import annotations
