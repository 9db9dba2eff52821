"""Disks: the list, one disk, its health and self-tests, the bays."""

from __future__ import annotations
