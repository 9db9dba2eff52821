"""Facts as rows, in a database in memory: models, store, router, and shaping for templates."""

from __future__ import annotations
