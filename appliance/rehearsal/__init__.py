"""The rehearsal of a rebuild on an empty pool: a disk is taken out and rebuilt, and the time is stored for estimates.

It may import ``benchmarks``, ``disks``, ``layout``, ``pools``, ``shares``, ``zfs`` and the ground.
Start at ``rehearse``.
"""

from __future__ import annotations
