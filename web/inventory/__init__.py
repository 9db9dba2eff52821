"""Facts as rows, in a database in memory: models, store, router, and bays, pool cards and the
whole box as pages show them."""

from __future__ import annotations
