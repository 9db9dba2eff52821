"""Copy folders to another pool, and know whether the copies are good: settings, planning, sending, keeping.

May import: datasets, shares, snapshots, zfs and the ground. Start with ``tasks.py`` (what is copied where and when),
then ``match.py`` (what a run has to send), ``run_backup.py`` and ``restore_folder.py``.
"""

from __future__ import annotations
