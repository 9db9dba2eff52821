"""Files on the disks, reached by descriptor so that no link leads elsewhere: a safe walk, and POSIX ACLs.

It imports ``system`` only.
"""

from __future__ import annotations
