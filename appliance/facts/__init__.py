"""What is so on the box, as plain frozen values: collectors read them, rows keep them, operations plan by them.

It imports nothing of Larder but ``names`` and ``errors``. Start at ``box.Facts``.
"""

from __future__ import annotations
