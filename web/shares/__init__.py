"""Shares of folders: switches, settings of each protocol, connections, manual changes, troubleshooting."""

from __future__ import annotations
