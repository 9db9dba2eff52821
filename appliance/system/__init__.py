"""The ground below every other package: Larder's paths, locks, files written atomically, the
clock, the system's accounts.

It knows no feature. Start at ``paths``.
"""

from __future__ import annotations
