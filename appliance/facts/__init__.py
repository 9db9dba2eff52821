"""Facts about the box as frozen values: collectors read them, rows store them, operations are planned from them.

It imports nothing of Larder but ``names`` and ``errors``. Start at ``box.Facts``.
"""

from __future__ import annotations
