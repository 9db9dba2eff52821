"""iSCSI: a volume that another computer uses as a disk of its own, through the kernel's target (LIO).

Start at ``serve.serve_volumes``; ``reconcile`` decides what to do, ``configfs`` does it.
"""

from __future__ import annotations
