"""The record of the box on its pools and copies, the recovery phrase that seals its secrets,
and taking the place of a box.

It may import ``users``, ``shares``, ``datasets`` and the ground. Start at ``refresh``.
"""

from __future__ import annotations
