"""The content of snapshots: folders, versions of a file, differences, restoring.

Start at ``requests``, which the agent answers.
"""

from __future__ import annotations
