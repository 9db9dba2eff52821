"""Pages about Larder itself, what every page shows around its content, error pages, the settings database."""

from __future__ import annotations
