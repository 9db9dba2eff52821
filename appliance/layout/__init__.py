"""Layouts of a pool: capacity, risk and advice for a set of disks. Pure functions.

It imports the facts only. Start at ``advice``.
"""

from __future__ import annotations
