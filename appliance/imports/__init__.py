"""Import of files from another NAS by rsync, into a folder of this box.

Start with ``rsync.py`` (what is asked of rsync, and what it says) and ``sources/`` (the kinds of other NAS), then
``sandbox.py`` (what rsync can reach meanwhile: the other NAS may be hostile) and ``run_import.py`` (the operation).
"""

from __future__ import annotations
