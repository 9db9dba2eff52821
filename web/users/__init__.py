"""Users and groups of shares, and who may use a folder."""

from __future__ import annotations
