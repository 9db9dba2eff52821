"""Jobs, readings and alerts in the background. See README.md beside this file."""

from __future__ import annotations
