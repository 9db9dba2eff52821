"""Copy folders to another pool, and know whether the copies are good: settings, planning, sending, keeping.

May import: snapshots, zfs and the ground. Start with ``tasks.py`` (what is copied where and when), then ``match.py`` (what a
run has to send) and ``run_backup.py``.
"""

from __future__ import annotations
