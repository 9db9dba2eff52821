"""Folders (datasets): the list, one folder, its settings, keys, volumes."""

from __future__ import annotations
