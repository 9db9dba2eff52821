"""Snapshots: lists, policies, browsing, restoring, the space that they use."""

from __future__ import annotations
