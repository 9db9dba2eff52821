"""Facts go to the database in memory, everything else to the one on disk."""

from __future__ import annotations

from typing import Any

FACTS = {"inventory", "django_cache"}


class InventoryRouter:
    """Django asks this for the database of each model."""

    def db_for_read(self, model: Any, **_hints: Any) -> str:
        return "inventory" if model._meta.app_label in FACTS else "default"

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool:
        return (db == "inventory") == (app_label in FACTS)
