"""What is done to snapshots: take, destroy, hold, clone; the policies that take and destroy them.

``browse`` looks into them. It may import ``zfs`` and the ground. Start at ``take.TakeSnapshot``, ``policy``.
"""

from __future__ import annotations
