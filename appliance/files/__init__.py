"""Files on the disks: a walk by descriptor, which no symbolic link can redirect, and POSIX ACLs.

It imports ``system`` only.
"""

from __future__ import annotations
