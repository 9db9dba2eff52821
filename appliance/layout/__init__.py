"""Layouts of a pool: capacity, risk and advice for a set of disks. Pure functions.

Imports only the facts. Start at ``advice``; ``shortlist`` picks the few layouts to choose from first.
"""

from __future__ import annotations
