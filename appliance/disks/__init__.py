"""Disks: which there are, what SMART says of them, their health, self-tests, standby, erasing, finding their bay.

It may import ``layout``, ``zfs`` and the ground. Start at ``inventory``, ``health``.
"""

from __future__ import annotations
