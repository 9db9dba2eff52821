"""What is done to whole pools: create, import, export, destroy, scrub, trim, checkpoint, upgrade; how a pool is.

``vdevs`` changes the shape of a pool. It may import ``zfs``, ``disks``, ``layout``, ``shares`` and the ground. Start at
``create.CreatePool``.
"""

from __future__ import annotations
