"""What the box can do."""

from __future__ import annotations

__version__ = "0.1.0"
