"""Another computer as the place of copies, over ssh: its settings and keys, what it answers, and sending to it.

Start with ``larder-peer`` (the script that runs there, and all that it understands), then ``connection.py`` (how it is
reached), ``remote_place.py`` (the place of copies) and ``send_backup.py`` (a run).
"""

from __future__ import annotations
