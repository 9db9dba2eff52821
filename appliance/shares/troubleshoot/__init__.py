""" "Why can't I see it?": what lies between a user and a share, and the fixes that the page offers.

Start at ``diagnose``.
"""

from __future__ import annotations
