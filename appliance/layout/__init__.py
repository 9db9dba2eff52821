"""Layouts of a pool: capacity, risk and advice for a set of disks. Pure functions.

Imports only the facts. Start at ``advice``.
"""

from __future__ import annotations
