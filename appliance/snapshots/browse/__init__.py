"""Browse snapshots: list folders, find versions of a file, compare, restore.

Start at ``requests``, which the agent answers.
"""

from __future__ import annotations
