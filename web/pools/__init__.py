"""Pools: the list, one pool, creating, importing, maintenance, replacing disks."""

from __future__ import annotations
