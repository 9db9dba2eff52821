"""Shares over SMB, NFS and AFP, and volumes over iSCSI: their settings, the files and daemons that
serve them, who is connected.

It may import ``zfs`` and the ground. Start at ``set_share.SetShare``, ``publish``.
"""

from __future__ import annotations
