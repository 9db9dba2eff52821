"""Burn-in: a disk is written and read back region by region before it enters a pool.

It may import ``benchmarks``, ``disks``, ``layout`` and the ground. Start at ``burn_in_disk``.
"""

from __future__ import annotations
