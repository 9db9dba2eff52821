"""Kinds of alerts, and the rules that raise them: facts in, faults out.

It may import ``agent``, ``disks``, ``pools``, ``zfs`` and the ground. Start at ``rules``.
"""

from __future__ import annotations
