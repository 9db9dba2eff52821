"""Operations on snapshots: take, destroy, hold, clone, bookmark; and the schedules that take and destroy them.

``browse`` reads their files. It may import ``files``, ``shares``, ``zfs`` and the ground. Start at
``take.TakeSnapshot`` and ``policy``.
"""

from __future__ import annotations
